//! Models of sound and speech.

use anyhow::Result;
use candle_core::{Module, Tensor};
use candle_transformers::models::*;
use serde_json::json;

use crate::{Entry, Setup};

/// Codes of `books` codebooks below 16.
fn codes(s: &Setup, books: usize, count: usize) -> Result<Tensor> {
    let codes: Vec<u32> = (0..(books * count) as u32).map(|i| (i * 7 + 3) % 16).collect();
    s.whole(&codes, (1, books, count))
}

fn encodec(s: &Setup) -> Result<encodec::Config> {
    s.config(json!({
        "target_bandwidths": [2.0], "sampling_rate": 400, "audio_channels": 1, "normalize": false,
        "num_filters": 4, "num_residual_layers": 1, "upsampling_ratios": [4, 2], "norm_type": "WeightNorm",
        "kernel_size": 7, "last_kernel_size": 7, "residual_kernel_size": 3, "dilation_growth_rate": 2,
        "use_causal_conv": true, "pad_mode": "Replicate", "compress": 2, "num_lstm_layers": 2,
        "trim_right_ratio": 1.0, "codebook_size": 16, "codebook_dim": 32, "use_conv_shortcut": true,
    }))
}

fn mimi() -> mimi::Config {
    let published = mimi::Config::v0_1(Some(4));
    mimi::Config {
        seanet: mimi::seanet::Config { dimension: 32, n_filters: 4, ratios: vec![4, 2], ..published.seanet },
        transformer: mimi::transformer::Config {
            d_model: 32,
            num_heads: 4,
            num_layers: 2,
            context: 16,
            dim_feedforward: 64,
            max_seq_len: 64,
            ..published.transformer
        },
        sample_rate: 200.0,
        frame_rate: 12.5,
        quantizer_bins: 16,
        quantizer_dim: 16,
        ..published
    }
}

pub const MODELS: &[Entry] = &[
    ("dac", |s| {
        let encoder = dac::Encoder::new(8, &[2, 4], 16, s.vb().pp("encoder"))?;
        let quantizer = dac::ResidualVectorQuantizer::new(16, 3, 16, 8, s.vb().pp("quantizer"))?;
        let decoder = dac::Decoder::new(16, 32, &[4, 2], 1, s.vb().pp("decoder"))?;
        let sound = encoder.forward(&s.input("sound", (1, 1, 64))?)?;
        Ok(vec![sound, decoder.forward(&quantizer.from_codes(&codes(s, 3, 5)?)?)?])
    }),
    ("encodec decoder", |s| {
        let model = encodec::Model::new(&encodec(s)?, s.vb())?;
        Ok(vec![model.decode(&codes(s, 4, 5)?)?])
    }),
    ("encodec encoder", |s| {
        let encoder = encodec::Encoder::new(&encodec(s)?, s.vb())?;
        Ok(vec![encoder.forward(&s.input("sound", (1, 1, 64))?)?])
    }),
    ("gemma4::audio", |s| {
        let cfg = s.config(json!({
            "input_feat_size": 16, "output_proj_dims": 32, "attention_chunk_size": 4,
            "attention_context_left": 5, "attention_context_right": 0, "num_hidden_layers": 1,
            "conv_kernel_size": 3, "conf_reduction_factor": 1, "subsampling_conv_channels": [8, 4],
        }))?;
        let model = gemma4::audio::AudioModel::new(&cfg, s.vb())?;
        let sound = s.input("sound", (1, 32, 16))?;
        let silent = Tensor::zeros((1, 32), s.dtype, &s.device)?;
        let (sound, mask) = model.forward(&sound, &silent)?;
        Ok(vec![sound, (mask + 1.0)?])
    }),
    ("metavoice::gpt", |s| {
        let cfg = metavoice::gpt::Config {
            block_size: 64,
            vocab_sizes: vec![16, 16],
            target_vocab_sizes: vec![16, 16, 16],
            n_layer: 2,
            n_head: 4,
            n_embd: 32,
            ..metavoice::gpt::Config::cfg1b_v0_1()
        };
        Ok(metavoice::gpt::Model::new(cfg, s.vb())?.forward(&codes(s, 2, 5)?)?)
    }),
    ("metavoice::transformer", |s| {
        let cfg = metavoice::transformer::Config {
            block_size: 64,
            vocab_size: 64,
            n_layer: 2,
            n_head: 4,
            dim: 32,
            speaker_emb_dim: 16,
            intermediate_size: Some(64),
            n_local_heads: Some(2),
            norm_eps: 1e-5,
        };
        let mut model = metavoice::transformer::Model::new(&cfg, s.vb())?;
        let speaker = s.input("speaker", (1, 16))?;
        s.decode(|ids, position| model.forward(ids, &speaker, position))
    }),
    ("mimi decoder", |s| Ok(vec![mimi::Model::new(mimi(), s.vb())?.decode(&codes(s, 4, 5)?)?])),
    ("mimi encoder", |s| {
        Ok(vec![mimi::Model::new(mimi(), s.vb())?.encode_pre_quantize(&s.input("sound", (1, 1, 128))?)?])
    }),
    ("mimi codes", |s| Ok(vec![mimi::Model::new(mimi(), s.vb())?.encode(&s.input("sound", (1, 1, 128))?)?])),
    ("parler_tts::Decoder", |s| {
        // The other parts are t5, and dac in one size.
        let cfg = s.config(json!({
            "vocab_size": 17, "ffn_dim": 64, "activation_function": "gelu", "scale_embedding": false,
            "num_codebooks": 2, "pad_token_id": 14, "bos_token_id": 15, "eos_token_id": 14,
            "rope_embeddings": false, "num_key_value_heads": 4,
        }))?;
        let mut decoder = parler_tts::Decoder::new(&cfg, s.vb())?;
        let described = s.input("description", (1, 4, 32))?;
        let first = decoder.forward(&codes(s, 2, 3)?, None, None, &described, None, 0)?;
        let next = decoder.forward(&codes(s, 2, 1)?, None, None, &described, None, 3)?;
        Ok([first, next].concat())
    }),
    ("snac", |s| {
        let cfg = s.config(json!({
            "sampling_rate": 400, "encoder_dim": 8, "encoder_rates": [2, 4], "decoder_dim": 32,
            "decoder_rates": [4, 2], "codebook_size": 16, "codebook_dim": 8, "vq_strides": [2, 1],
            "noise": false, "depthwise": false,
        }))?;
        let model = snac::Model::new(&cfg, s.vb())?;
        let (coarse, fine) = (codes(s, 1, 2)?.squeeze(0)?, codes(s, 1, 4)?.squeeze(0)?);
        Ok(vec![model.decode(&[&coarse, &fine])?])
    }),
    ("voxtral", |s| {
        let cfg = voxtral::VoxtralConfig {
            audio_config: voxtral::VoxtralEncoderConfig {
                vocab_size: 64,
                hidden_size: 32,
                intermediate_size: 64,
                num_hidden_layers: 2,
                num_attention_heads: 4,
                num_key_value_heads: 4,
                head_dim: 8,
                num_mel_bins: 8,
                max_source_positions: 8,
                ..voxtral::VoxtralEncoderConfig::default()
            },
            text_config: s.config(json!({}))?,
            audio_token_id: 60,
            projector_hidden_act: "gelu".to_owned(),
        };
        let model = voxtral::VoxtralForConditionalGeneration::new(&cfg, s.vb())?;
        let mut cache = voxtral::VoxtralCache::new(true, s.dtype, &cfg.text_config, &s.device)?;
        let sound = s.input("sound", (1, 8, 16))?;
        let ids = s.whole(&[1, 60, 60, 60, 60, 5], (1, 6))?;
        let first = model.forward(&ids, Some(&sound), &mut cache, 0)?;
        Ok(vec![first, model.forward(&s.whole(&[17], (1, 1))?, None, &mut cache, 6)?])
    }),
    ("whisper", |s| {
        let cfg: whisper::Config = s.config(whisper_names())?;
        let mut model = whisper::model::Whisper::load(&s.vb(), cfg)?;
        let sound = model.encoder.forward(&s.input("sound", (1, 8, 16))?, true)?;
        let text = model.decoder.forward(&s.ids(4)?, &sound, true)?;
        Ok(vec![model.decoder.final_linear(&text)?, sound])
    }),
];

/// Whisper's names.
pub fn whisper_names() -> serde_json::Value {
    json!({
        "num_mel_bins": 8, "max_source_positions": 8, "encoder_attention_heads": 4, "encoder_layers": 2,
        "max_target_positions": 16, "decoder_attention_heads": 4, "decoder_layers": 2,
    })
}
