//! Models of images, and of images and text.

use std::sync::Arc;

use anyhow::Result;
use candle_core::{Module, ModuleT, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::*;
use serde_json::{Value, json};

use crate::{Entry, Setup};

/// A network of images, on one of `side` by `side` pixels.
fn image<M: Module>(
    s: &Setup,
    side: usize,
    model: impl FnOnce(VarBuilder<'static>) -> candle_core::Result<M>,
) -> Result<Vec<Tensor>> {
    Ok(vec![model(s.vb())?.forward(&s.input("image", (1, 3, side, side))?)?])
}

/// What a model gives for a picture and for a sentence.
fn pair((image, text): (Tensor, Tensor)) -> Vec<Tensor> {
    vec![image, text]
}

/// What the model takes as there if it is: kernels of one pixel have no smaller ones beside them, and the first stage is as large as
/// the stem's result.
const FASTVIT: &[&str] = &["stem.2.conv_scale", "proj.1.conv_scale", "stages.0.downsample"];

fn clip_text() -> clip::text_model::ClipTextConfig {
    clip::text_model::ClipTextConfig {
        vocab_size: 64,
        embed_dim: 32,
        intermediate_size: 64,
        max_position_embeddings: 16,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        projection_dim: 16,
        ..clip::text_model::ClipTextConfig::vit_base_patch32()
    }
}

fn clip_vision() -> clip::vision_model::ClipVisionConfig {
    clip::vision_model::ClipVisionConfig {
        embed_dim: 32,
        intermediate_size: 64,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        projection_dim: 16,
        image_size: 32,
        patch_size: 8,
        ..clip::vision_model::ClipVisionConfig::vit_base_patch32()
    }
}

fn paligemma(s: &Setup) -> Result<paligemma::Config> {
    Ok(paligemma::Config {
        vision_config: s.config(json!({"hidden_act": "gelu_pytorch_tanh"}))?,
        text_config: s.config(json!({"hidden_act": "gelu_pytorch_tanh"}))?,
        projection_dim: 32,
    })
}

/// BLIP's configuration, of a width.
pub fn blip_config(width: usize) -> Value {
    json!({
        "vision_config": {
            "hidden_size": width, "intermediate_size": 2 * width, "projection_dim": width / 2, "num_hidden_layers": 2,
            "num_attention_heads": 4, "image_size": 32, "patch_size": 8, "hidden_act": "gelu",
            "layer_norm_eps": 1e-5,
        },
        "text_config": {
            "vocab_size": 64, "hidden_size": width, "encoder_hidden_size": width, "intermediate_size": 2 * width,
            "projection_dim": width / 2, "num_hidden_layers": 2, "num_attention_heads": 4,
            "max_position_embeddings": 64, "hidden_act": "gelu", "layer_norm_eps": 1e-5,
            "is_decoder": true,
        },
        "image_text_hidden_size": width / 2,
    })
}

pub const MODELS: &[Entry] = &[
    ("beit", |s| image(s, 384, |vb| beit::BeitVisionTransformer::new(vb, 1, 32, 2))),
    ("blip", |s| {
        let cfg = s.config(blip_config(32))?;
        let mut model = blip::BlipForConditionalGeneration::new(&cfg, s.vb())?;
        let picture = model.vision_model().forward(&s.input("image", (1, 3, 32, 32))?)?;
        let mut outputs = s.decode(|ids, _| model.text_decoder().forward(ids, &picture))?;
        outputs.push(picture);
        Ok(outputs)
    }),
    ("chinese_clip", |s| {
        use chinese_clip::text_model::ChineseClipTextConfig as Text;
        use chinese_clip::vision_model::ChineseClipVisionConfig as Vision;
        let cfg = chinese_clip::ChineseClipConfig {
            text_config: Text {
                vocab_size: 64,
                hidden_size: 32,
                num_hidden_layers: 2,
                num_attention_heads: 4,
                intermediate_size: 64,
                max_position_embeddings: 64,
                ..Text::clip_vit_base_patch16()
            },
            vision_config: Vision {
                hidden_size: 32,
                intermediate_size: 64,
                projection_dim: 16,
                num_hidden_layers: 2,
                num_attention_heads: 4,
                image_size: 32,
                patch_size: 8,
                ..Vision::clip_vit_base_patch16()
            },
            projection_dim: 16,
            image_size: 32,
            ..chinese_clip::ChineseClipConfig::clip_vit_base_patch16()
        };
        let model = chinese_clip::ChineseClipModel::new(s.vb_without(&["pooler"]), &cfg)?;
        let (picture, ids) = (s.input("image", (1, 3, 32, 32))?, s.ids(7)?);
        Ok(pair(model.forward(&picture, &ids, None, None)?))
    }),
    ("clip", |s| {
        let cfg = clip::ClipConfig {
            text_config: clip_text(),
            vision_config: clip_vision(),
            logit_scale_init_value: 2.6592,
            image_size: 32,
        };
        let model = clip::ClipModel::new(s.vb(), &cfg)?;
        Ok(pair(model.forward(&s.input("image", (1, 3, 32, 32))?, &s.ids(7)?)?))
    }),
    ("colpali", |s| {
        let mut model = colpali::Model::new(&paligemma(s)?, s.vb())?;
        let picture = model.forward_images(&s.input("image", (1, 3, 32, 32))?, &s.ids(4)?)?;
        let mut model = colpali::Model::new(&paligemma(s)?, s.vb())?;
        Ok(vec![picture, model.forward_text(&s.ids(7)?)?])
    }),
    ("convmixer", |s| image(s, 28, |vb| convmixer::c1024_20(10, vb))),
    ("convnext", |s| image(s, 32, |vb| convnext::convnext(&convnext::Config::atto(), 10, vb))),
    ("depth_anything_v2", |s| {
        let patches = 2;
        let cfg = depth_anything_v2::DepthAnythingV2Config::new(
            [16, 16, 16, 16],
            32,
            16,
            false,
            false,
            vec![0, 1, 2, 3],
            14 * patches,
            patches,
        );
        let encoder = Arc::new(dinov2::DinoVisionTransformer::new(s.vb(), 4, 32, 2)?);
        image(s, 14 * patches, |vb| depth_anything_v2::DepthAnythingV2::new(encoder, cfg, vb))
    }),
    ("dinov2", |s| image(s, 518, |vb| dinov2::DinoVisionTransformer::new(vb, 1, 32, 2))),
    ("dinov2reg4", |s| image(s, 518, |vb| dinov2reg4::DinoVisionTransformer::new(vb, 1, 32, 2))),
    ("efficientnet", |s| {
        image(s, 32, |vb| efficientnet::EfficientNet::new(vb, efficientnet::MBConvConfig::b0(), 10))
    }),
    ("efficientvit", |s| image(s, 224, |vb| efficientvit::efficientvit(&efficientvit::Config::m0(), 10, vb))),
    ("eva2", |s| image(s, 448, |vb| eva2::EVA2VisionTransformer::new(vb, 1, 64, 1))),
    ("fastvit", |s| {
        let cfg = s.config(json!({
            "exp_ratio": 2, "in_channels": 16, "blocks": [1, 1, 1, 1], "attn": true, "lkc_use_act": true,
        }))?;
        let model = fastvit::fastvit(&cfg, 10, s.vb_without(FASTVIT))?;
        Ok(vec![model.forward(&s.input("image", (1, 3, 64, 64))?)?])
    }),
    ("gemma4::vision", |s| {
        let cfg = s.config(json!({
            "hidden_activation": "gelu_pytorch_tanh", "num_key_value_heads": 4, "position_embedding_size": 64,
            "pooling_kernel_size": 2, "default_output_length": 4, "standardize": true,
        }))?;
        let model = gemma4::vision::VisionTower::new(&cfg, s.vb())?;
        Ok(vec![model.forward(&[s.input("image", (1, 3, 32, 32))?])?])
    }),
    ("hiera", |s| {
        // Its tokens are those of 224 by 224 pixels.
        let cfg = s.config(json!({"channels": 16, "heads": 1, "stages": [1, 1, 1, 1]}))?;
        let model = hiera::hiera(&cfg, 10, s.vb_without(&["blocks.0.proj"]))?;
        Ok(vec![model.forward(&s.input("image", (1, 3, 224, 224))?)?])
    }),
    ("llava", |s| {
        let cfg: llava::config::LLaVAConfig = s.config(json!({
            "architectures": [], "image_crop_resolution": 32, "image_grid_pinpoints": [],
            "image_split_resolution": 32, "mm_hidden_size": 32, "mm_projector_type": "mlp2x_gelu",
            "mm_use_im_start_end": false, "mm_vision_select_feature": "patch", "mm_vision_select_layer": -2,
            "model_type": "llava", "torch_dtype": "float16", "mm_patch_merge_type": "flat",
            "hf": true, "image_aspect_ratio": "square", "image_token_index": 63, "num_key_value_heads": 4,
        }))?;
        let model = llava::LLaVA::load(s.vb(), &cfg, Some(clip_vision()))?;
        let llama = cfg.to_llama_config();
        let mut cache = llama::Cache::new(true, s.dtype, &llama, &s.device)?;
        let picture = s.input("image", (1, 3, 32, 32))?;
        let ids = Tensor::new(&[[1_i64, 63, 5, 28]], &s.device)?;
        let mixed =
            model.prepare_inputs_labels_for_multimodal(&ids, std::slice::from_ref(&picture), &[(32, 32)])?;
        Ok(vec![model.encode_images(&picture)?, model.forward(&mixed, 0, &mut cache)?])
    }),
    ("mobileclip", |s| {
        let cfg = mobileclip::MobileClipConfig {
            text_config: openclip::text_model::Config {
                vocab_size: 64,
                embed_dim: 32,
                intermediate_size: 64,
                max_position_embeddings: 16,
                num_hidden_layers: 2,
                num_attention_heads: 4,
                projection_dim: 512,
                ..openclip::text_model::Config::vit_base_patch32()
            },
            vision_config: s.config(json!({
                "exp_ratio": 2, "in_channels": 16, "blocks": [1, 1, 1, 1], "attn": true, "lkc_use_act": true,
            }))?,
            image_size: 64,
        };
        let model = mobileclip::MobileClipModel::new(s.vb_without(FASTVIT), &cfg)?;
        Ok(pair(model.forward(&s.input("image", (1, 3, 64, 64))?, &s.ids(7)?)?))
    }),
    ("mobilenetv4 convolutions", |s| {
        image(s, 128, |vb| mobilenetv4::mobilenetv4(&mobilenetv4::Config::small(), 10, vb))
    }),
    ("mobilenetv4 hybrid", |s| {
        image(s, 224, |vb| mobilenetv4::mobilenetv4(&mobilenetv4::Config::hybrid_medium(), 10, vb))
    }),
    ("mobileone", |s| image(s, 32, |vb| mobileone::mobileone(&mobileone::Config::s0(), 10, vb))),
    ("moondream", |s| {
        let cfg = s.config(json!({
            "phi_config": {
                "vocab_size": 64, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_inner": 64, "n_head": 4,
                "rotary_dim": 8, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
                "tie_word_embeddings": false, "pad_vocab_size_multiple": 64,
            },
            // Its patches have 14 by 14 pixels, and 1152 numbers each.
            "vision_config": {
                "image_embedding_dim": 1152, "model_dim": 32, "hidden_dim": 64, "hidden_features": 64,
                "embed_len": 4, "embed_dim": 1152, "num_blocks": 1, "num_heads": 16,
                "act": "gelu_pytorch_tanh",
            },
        }))?;
        let mut model = moondream::Model::new(&cfg, s.vb())?;
        let picture = model.vision_encoder().forward(&s.input("image", (1, 3, 28, 28))?)?;
        let text = model.text_model().forward_with_img(&s.whole(&[1], (1, 1))?, &s.ids(4)?, &picture)?;
        Ok(vec![picture, text, model.text_model().forward(&s.whole(&[17], (1, 1))?)?])
    }),
    ("paddleocr_vl", |s| {
        let cfg = s.config(json!({
            "vision_config": {
                "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
                "image_size": 32, "patch_size": 8,
            },
            "rms_norm_eps": null, "head_dim": 16, "rope_scaling": {"mrope_section": [2, 3, 3]}, "image_token_id": 63,
        }))?;
        let mut model = paddleocr_vl::PaddleOCRVLModel::new(&cfg, s.vb())?;
        let (picture, grid) = (s.input("image", (1, 3, 32, 32))?, s.whole(&[1, 4, 4], (1, 3))?);
        let ids = s.whole(&[1, 63, 63, 63, 63, 5, 28], (1, 7))?;
        let text = model.forward(&ids, Some(&picture), Some(&grid), 0)?;
        Ok(vec![text, model.forward(&s.whole(&[17], (1, 1))?, None, None, 7)?])
    }),
    ("paligemma", |s| {
        let mut model = paligemma::Model::new(&paligemma(s)?, s.vb())?;
        let first = model.setup(&s.input("image", (1, 3, 32, 32))?, &s.ids(4)?)?;
        Ok(vec![first, model.forward(&s.whole(&[17], (1, 1))?)?])
    }),
    ("pixtral", |s| {
        let cfg = pixtral::Config {
            projector_hidden_act: candle_nn::Activation::Gelu,
            text_config: s.config(json!({}))?,
            vision_config: s.config(json!({}))?,
            image_token_index: 10,
            image_seq_length: 16,
        };
        let mut model = pixtral::Model::new(&cfg, s.vb())?;
        let picture = s.input("image", (1, 3, 32, 24))?.to_dtype(candle_core::DType::F32)?;
        let picture = model.encode_image(&picture)?;
        let next = model.lm_forward_embeds(&picture.to_dtype(s.dtype)?)?;
        Ok(vec![picture, next, model.lm_forward(&s.whole(&[17], (1, 1))?)?])
    }),
    ("qwen3_vl", |s| {
        let cfg = s.config(json!({
            "text_config": {
                "head_dim": 8, "vocab_size": 64, "hidden_size": 32, "intermediate_size": 64,
                "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                "hidden_act": "silu", "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
                "tie_word_embeddings": false, "rope_theta": 10000.0, "sliding_window": null,
            },
            "vision_config": {
                "depth": 2, "hidden_size": 32, "out_hidden_size": 32, "intermediate_size": 64, "num_heads": 4,
                "in_chans": 3, "patch_size": 8, "spatial_merge_size": 2, "temporal_patch_size": 2,
                "num_position_embeddings": 16, "deepstack_visual_indexes": [0],
            },
            "image_token_id": 60, "video_token_id": 61, "vision_start_token_id": 62,
            "vision_end_token_id": 63,
        }))?;
        let model = qwen3_vl::Qwen3VLModel::new(&cfg, s.vb())?;
        // 4 by 4 patches of two frames, which 4 tokens stand for.
        let picture = s.input("image", (16, 3 * 2 * 8 * 8))?;
        let ids = s.whole(&[1, 60, 60, 60, 60, 5, 28], (1, 7))?;
        let grid = s.whole(&[1, 4, 4], (1, 3))?;
        let pads = vec![vec![(1, 5)]];
        let none = vec![vec![]];
        let text =
            model.forward(&ids, Some(picture), None, Some(grid), None, vec![7], pads, none.clone(), &[0])?;
        let next = s.whole(&[17], (1, 1))?;
        let next = model.forward(&next, None, None, None, None, vec![8], none.clone(), none, &[7])?;
        Ok(vec![text, next])
    }),
    ("repvgg", |s| image(s, 32, |vb| repvgg::repvgg(&repvgg::Config::a0(), 10, vb))),
    ("resnet 18", |s| image(s, 32, |vb| resnet::resnet18(10, vb))),
    ("resnet 50", |s| image(s, 32, |vb| resnet::resnet50(10, vb))),
    ("segformer", |s| {
        let cfg = s.config(json!({
            "num_encoder_blocks": 4, "depths": [1, 1, 1, 1], "sr_ratios": [8, 4, 2, 1],
            "hidden_sizes": [16, 16, 32, 32], "patch_sizes": [7, 3, 3, 3], "strides": [4, 2, 2, 2],
            "num_attention_heads": [1, 2, 2, 4], "mlp_ratios": [2, 2, 2, 2], "hidden_act": "gelu",
            "decoder_hidden_size": 32,
        }))?;
        image(s, 64, |vb| segformer::SemanticSegmentationModel::new(&cfg, 5, vb))
    }),
    ("segment_anything::image_encoder", |s| {
        image(s, 32, |vb| {
            segment_anything::image_encoder::ImageEncoderViT::new(
                32,
                4,
                3,
                16,
                2,
                2,
                8,
                true,
                true,
                true,
                3,
                &[1],
                vb,
            )
        })
    }),
    ("segment_anything::mask_decoder", |s| {
        use segment_anything::{mask_decoder::MaskDecoder, prompt_encoder::PromptEncoder};
        let prompts = PromptEncoder::new(32, (4, 4), (32, 32), 16, s.vb().pp("prompt_encoder"))?;
        let decoder = MaskDecoder::new(32, 3, 3, 32, s.vb().pp("mask_decoder"))?;
        let (points, labels) = (s.input("points", (1, 2, 2))?, s.input("labels", (1, 2))?.ones_like()?);
        let (sparse, dense) = prompts.forward(Some((&(points * 16.0)?, &labels)), None, None)?;
        let (places, picture) = (prompts.get_dense_pe()?, s.input("image", (1, 32, 4, 4))?);
        Ok(pair(decoder.forward(&picture, &places, &sparse, &dense, true)?))
    }),
    ("siglip", |s| {
        let cfg = siglip::Config {
            text_config: s.config(json!({"hidden_act": "gelu_pytorch_tanh"}))?,
            vision_config: s.config(json!({"hidden_act": "gelu_pytorch_tanh"}))?,
        };
        let model = siglip::Model::new(&cfg, s.vb())?;
        Ok(pair(model.forward(&s.input("image", (1, 3, 32, 32))?, &s.ids(64)?)?))
    }),
    ("trocr", |s| {
        let decoder = s.config(json!({
            "cross_attention_hidden_size": 32, "decoder_layers": 2, "decoder_attention_heads": 4,
            "decoder_ffn_dim": 64, "activation_function": "gelu", "dropout": 0.0, "attention_dropout": 0.0,
            "activation_dropout": 0.0, "decoder_start_token_id": 2, "init_std": 0.02,
            "decoder_layerdrop": 0.0, "scale_embedding": true,
        }))?;
        let encoder = s.config(json!({"hidden_act": "gelu", "qkv_bias": true}))?;
        let mut model = trocr::TrOCRModel::new(&encoder, &decoder, s.vb())?;
        let picture = model.encoder().forward(&s.input("image", (1, 3, 32, 32))?)?;
        // Its mask fits one token at a time.
        let first = model.decode(&s.whole(&[2], (1, 1))?, &picture, 0)?;
        Ok(vec![first, model.decode(&s.whole(&[17], (1, 1))?, &picture, 1)?, picture])
    }),
    ("vgg", |s| {
        let model = vgg::Vgg::new(s.vb(), vgg::Models::Vgg13)?;
        Ok(vec![model.forward_t(&s.input("image", (3, 224, 224))?, false)?])
    }),
    ("vit", |s| {
        let cfg = s.config(json!({"hidden_act": "gelu", "qkv_bias": true}))?;
        let model = vit::Model::new(&cfg, 10, s.vb())?;
        Ok(vec![model.forward(&s.input("image", (1, 3, 32, 32))?)?])
    }),
];
