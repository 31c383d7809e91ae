//! Models that make images from noise.

use anyhow::Result;
use candle_core::{DType, Module, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::flux::WithForward;
use candle_transformers::models::*;
use serde_json::json;

use crate::{Entry, Setup};

/// The shape of Flux, small.
pub fn flux() -> flux::model::Config {
    flux::model::Config {
        in_channels: 16,
        vec_in_dim: 16,
        context_in_dim: 32,
        hidden_size: 64,
        mlp_ratio: 2.0,
        num_heads: 2,
        depth: 1,
        depth_single_blocks: 1,
        axes_dim: vec![8, 12, 12],
        theta: 10_000,
        qkv_bias: true,
        guidance_embed: true,
    }
}

/// A step of Flux for 2 by 2 patches and 3 tokens.
pub fn flux_step(s: &Setup, model: &impl WithForward) -> Result<Vec<Tensor>> {
    let places: Vec<f32> = (0..4).flat_map(|i| [0.0, (i / 2) as f32, (i % 2) as f32]).collect();
    let places = Tensor::from_vec(places, (1, 4, 3), &s.device)?.to_dtype(s.dtype)?;
    let step = (s.input("step", 1)?.zeros_like()? + 0.5)?;
    Ok(vec![model.forward(
        &s.input("image", (1, 4, 16))?,
        &places,
        &s.input("text", (1, 3, 32))?,
        &Tensor::zeros((1, 3, 3), s.dtype, &s.device)?,
        &step,
        &s.input("pooled", (1, 16))?,
        Some(&step),
    )?])
}

fn clip(s: &Setup, cfg: &stable_diffusion::clip::Config) -> Result<Vec<Tensor>> {
    let model = stable_diffusion::clip::ClipTextTransformer::new(s.vb(), cfg)?;
    // It has as many tokens always.
    Ok(vec![model.forward(&s.ids(77)?)?])
}

fn mmdit(s: &Setup, vb: VarBuilder<'static>) -> Result<Vec<Tensor>> {
    let cfg = mmdit::model::Config {
        patch_size: 2,
        in_channels: 4,
        out_channels: 4,
        depth: 2,
        head_size: 16,
        adm_in_channels: 16,
        pos_embed_max_size: 8,
        context_embed_size: 32,
        frequency_embedding_size: 16,
    };
    let model = mmdit::model::MMDiT::new(&cfg, false, vb)?;
    let (image, step) = (s.input("image", (1, 4, 8, 8))?, s.input("step", 1)?.to_dtype(DType::F32)?);
    let (pooled, text) = (s.input("pooled", (1, 16))?, s.input("text", (1, 3, 32))?);
    Ok(vec![model.forward(&image, &step, &pooled, &text, None)?])
}

pub const MODELS: &[Entry] = &[
    ("flux::autoencoder", |s| {
        let cfg = flux::autoencoder::Config {
            resolution: 16,
            in_channels: 3,
            ch: 32,
            out_ch: 3,
            ch_mult: vec![1, 2],
            num_res_blocks: 1,
            z_channels: 4,
            scale_factor: 0.3611,
            shift_factor: 0.1159,
        };
        // The encoder draws random numbers; what comes before them is the same network.
        let encoder = flux::autoencoder::Encoder::new(&cfg, s.vb().pp("encoder"))?;
        let decoder = flux::autoencoder::AutoEncoder::new(&cfg, s.vb())?;
        let image = encoder.forward(&s.input("image", (1, 3, 16, 16))?)?;
        Ok(vec![image, decoder.decode(&s.input("latent", (1, 4, 8, 8))?)?])
    }),
    ("flux::model", |s| flux_step(s, &flux::model::Flux::new(&flux(), s.vb())?)),
    ("mmdit sd3", |s| mmdit(s, s.vb_without(&["attn2", "ln_k", "ln_q"]))),
    ("mmdit sd3.5", |s| mmdit(s, s.vb())),
    ("stable_diffusion::clip", |s| clip(s, &stable_diffusion::clip::Config::v1_5())),
    ("stable_diffusion::unet_2d", |s| {
        use stable_diffusion::unet_2d::{BlockConfig, UNet2DConditionModel, UNet2DConditionModelConfig};
        let block = |out_channels, use_cross_attn| BlockConfig {
            out_channels,
            use_cross_attn,
            attention_head_dim: 2,
        };
        let cfg = UNet2DConditionModelConfig {
            blocks: vec![block(32, Some(1)), block(64, None)],
            layers_per_block: 1,
            cross_attention_dim: 32,
            ..UNet2DConditionModelConfig::default()
        };
        let model = UNet2DConditionModel::new(s.vb(), 4, 4, false, cfg)?;
        let text = s.input("text", (1, 5, 32))?;
        Ok(vec![model.forward(&s.input("image", (1, 4, 8, 8))?, 40.0, &text)?])
    }),
    ("stable_diffusion::vae", |s| {
        use stable_diffusion::vae::{AutoEncoderKL, AutoEncoderKLConfig};
        let cfg = AutoEncoderKLConfig {
            block_out_channels: vec![32, 64],
            layers_per_block: 1,
            norm_num_groups: 8,
            ..AutoEncoderKLConfig::default()
        };
        let model = AutoEncoderKL::new(s.vb(), 3, 3, cfg)?;
        Ok(vec![model.decode(&s.input("latent", (1, 4, 8, 8))?)?])
    }),
    ("wuerstchen::diffnext", |s| {
        // Its hidden layers have 320 to 1280 channels, and 52 blocks.
        let model = wuerstchen::diffnext::WDiffNeXt::new(4, 4, 16, 64, 32, 2, false, s.vb())?;
        Ok(vec![model.forward(
            &s.input("image", (1, 4, 16, 16))?,
            &(s.input("step", 1)?.zeros_like()? + 0.5)?,
            &s.input("effnet", (1, 16, 4, 4))?,
            Some(&s.input("text", (1, 3, 32))?),
        )?])
    }),
    ("wuerstchen::paella_vq", |s| {
        let model = wuerstchen::paella_vq::PaellaVQ::new(s.vb())?;
        Ok(vec![
            model.decode(&s.input("latent", (1, 4, 2, 2))?)?,
            model.encode(&s.input("image", (1, 3, 8, 8))?)?,
        ])
    }),
    ("wuerstchen::prior", |s| {
        let model = wuerstchen::prior::WPrior::new(4, 32, 32, 16, 2, 2, false, s.vb())?;
        let step = (s.input("step", 1)?.zeros_like()? + 0.5)?;
        Ok(vec![model.forward(&s.input("image", (1, 4, 4, 4))?, &step, &s.input("text", (1, 3, 32))?)?])
    }),
    ("z_image::text_encoder", |s| {
        let cfg = s.config(json!({}))?;
        Ok(vec![z_image::text_encoder::ZImageTextEncoder::new(&cfg, s.vb())?.forward(&s.ids(5)?)?])
    }),
    ("z_image::transformer", |s| {
        let cfg = s.config(json!({
            "in_channels": 4, "dim": 64, "n_layers": 2, "n_refiner_layers": 1, "n_heads": 2, "n_kv_heads": 2,
            "cap_feat_dim": 32, "axes_dims": [8, 12, 12], "axes_lens": [64, 16, 16],
        }))?;
        let model = z_image::transformer::ZImageTransformer2DModel::new(&cfg, s.vb())?;
        let step = (s.input("step", 1)?.zeros_like()? + 0.5)?;
        let (image, text) = (s.input("image", (1, 4, 1, 8, 8))?, s.input("text", (1, 5, 32))?);
        Ok(vec![model.forward(&image, &step, &text, &Tensor::ones((1, 5), DType::U8, &s.device)?)?])
    }),
    ("z_image::vae", |s| {
        let cfg = s.config(json!({
            "latent_channels": 4, "block_out_channels": [16, 32], "layers_per_block": 1, "norm_num_groups": 8,
        }))?;
        let model = z_image::vae::AutoEncoderKL::new(&cfg, s.vb())?;
        Ok(vec![model.decode(&s.input("latent", (1, 4, 8, 8))?)?])
    }),
];
