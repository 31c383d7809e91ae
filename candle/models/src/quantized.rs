//! Models with quantized weights.

use candle_core::quantized::gguf_file::Value;
use candle_core::{Module, Tensor};
use candle_transformers::models::*;
use serde_json::json;

use crate::diffusion::flux_step;
use crate::gguf::{Gguf, build};
use crate::text::{rwkv, t5_names};
use crate::{Entry, audio, diffusion, vision};

/// Weights of 64 columns, so that all are quantized.
macro_rules! wide {
    ($s:expr, {$($name:tt: $value:expr),* $(,)?}) => {
        $s.config(json!({"hidden_size": 64, "intermediate_size": 128, "head_dim": 16, $($name: $value),*}))?
    };
}

/// One token after the other.
macro_rules! recur {
    ($s:expr, $model:expr, $state:expr) => {{
        let (model, mut state) = ($model, $state);
        let step = |token: &u32| Ok(model.forward(&$s.whole(&[*token], (1, 1))?, &mut state)?);
        [5, 28, 51].iter().map(step).collect()
    }};
}

const EXPERTS: &[(&str, u32)] =
    &[("expert_count", 4), ("expert_used_count", 2), ("expert_feed_forward_length", 32)];

fn with_experts(architecture: &str) -> Gguf {
    let file = Gguf::of(architecture).blocks(&[("ffn_gate_inp.weight", &[4, 64])]);
    EXPERTS.iter().fold(file, |file, &(name, number)| file.with(architecture, name, Value::U32(number)))
}

const QK_NORM: &[(&str, &[usize])] = &[("attn_q_norm.weight", &[16]), ("attn_k_norm.weight", &[16])];
const POST_NORMS: &[(&str, &[usize])] =
    &[("post_attention_norm.weight", &[64]), ("post_ffw_norm.weight", &[64])];
const QKV_BIAS: &[(&str, &[usize])] =
    &[("attn_q.bias", &[64]), ("attn_k.bias", &[32]), ("attn_v.bias", &[32])];

pub const MODELS: &[Entry] = &[
    ("flux::quantized_model", |s| {
        flux_step(s, &build(s, |vb| flux::quantized_model::Flux::new(&diffusion::flux(), vb))?)
    }),
    ("quantized_blip", |s| {
        let cfg = s.config(vision::blip_config(64))?;
        let mut model = build(s, |vb| quantized_blip::BlipForConditionalGeneration::new(&cfg, vb))?;
        let picture = model.vision_model().forward(&s.input("image", (1, 3, 32, 32))?)?;
        let mut outputs = s.decode(|ids, _| model.text_decoder().forward(ids, &picture))?;
        outputs.push(picture);
        Ok(outputs)
    }),
    ("quantized_gemma3", |s| {
        let file = Gguf::of("gemma3").blocks(QK_NORM).blocks(POST_NORMS);
        let file = file.with("gemma3", "attention.sliding_window", Value::U32(4));
        let mut model = file.read(s, |ct, r| quantized_gemma3::ModelWeights::from_gguf(ct, r, &s.device))?;
        s.decode(|ids, position| model.forward(ids, position))
    }),
    ("quantized_glm4", |s| {
        let file = Gguf::of("glm4").blocks(POST_NORMS).blocks(QKV_BIAS);
        let file = file.blocks(&[("ffn_up.weight", &[256, 64])]);
        let mut model =
            file.read(s, |ct, r| quantized_glm4::ModelWeights::from_gguf(ct, r, &s.device, s.dtype))?;
        s.decode(|ids, position| model.forward(ids, position))
    }),
    ("quantized_lfm2", |s| {
        let heads = Value::Array(vec![Value::U32(0), Value::U32(2)]);
        let file = Gguf::of("lfm2").blocks(QK_NORM).with("lfm2", "attention.head_count_kv", heads);
        let file = file.with("lfm2", "shortconv.l_cache", Value::U32(3)).blocks(&[
            ("shortconv.in_proj.weight", &[192, 64]),
            ("shortconv.out_proj.weight", &[64, 64]),
            ("shortconv.conv.weight", &[64, 3]),
        ]);
        let mut model = file.read(s, |ct, r| quantized_lfm2::ModelWeights::from_gguf(ct, r, &s.device))?;
        s.decode(|ids, position| model.forward(ids, position))
    }),
    ("quantized_llama", |s| {
        let mut model =
            Gguf::of("llama").read(s, |ct, r| quantized_llama::ModelWeights::from_gguf(ct, r, &s.device))?;
        s.decode(|ids, position| model.forward(ids, position))
    }),
    ("quantized_llama with experts", |s| {
        let mut file = with_experts("llama");
        for expert in 0..4 {
            file = file.blocks(&[
                (&format!("ffn_gate.{expert}.weight"), &[128, 64]),
                (&format!("ffn_up.{expert}.weight"), &[128, 64]),
                (&format!("ffn_down.{expert}.weight"), &[64, 128]),
            ]);
        }
        let mut model = file.read(s, |ct, r| quantized_llama::ModelWeights::from_gguf(ct, r, &s.device))?;
        s.decode(|ids, position| model.forward(ids, position))
    }),
    ("quantized_llama2_c", |s| {
        let cfg = llama2_c::Config {
            dim: 64,
            hidden_dim: 128,
            n_layers: 2,
            n_heads: 4,
            n_kv_heads: 2,
            vocab_size: 64,
            seq_len: 64,
            norm_eps: 1e-5,
        };
        let mut cache = llama2_c::Cache::new(true, &cfg, s.vb().pp("rot"))?;
        let model = build(s, |vb| quantized_llama2_c::QLlama::load(vb, cfg.clone()))?;
        s.decode(|ids, position| model.forward(ids, position, &mut cache))
    }),
    ("quantized_metavoice", |s| {
        let cfg = metavoice::transformer::Config {
            block_size: 64,
            vocab_size: 64,
            n_layer: 2,
            n_head: 4,
            dim: 64,
            speaker_emb_dim: 32,
            intermediate_size: Some(128),
            n_local_heads: Some(2),
            norm_eps: 1e-5,
        };
        let mut model = build(s, |vb| quantized_metavoice::transformer::Model::new(&cfg, vb))?;
        let speaker = s.input("speaker", (1, 32))?;
        s.decode(|ids, position| model.forward(ids, &speaker, position))
    }),
    ("quantized_mistral", |s| {
        let cfg = wide!(s, {});
        let mut model = build(s, |vb| quantized_mistral::Model::new(&cfg, vb))?;
        s.decode(|ids, position| model.forward(ids, position))
    }),
    ("quantized_mixformer", |s| {
        let cfg = s.config(json!({
            "n_embd": 64, "n_inner": 128, "rotary_dim": 16, "activation_function": "gelu_new",
            "pad_vocab_size_multiple": 64,
        }))?;
        let mut model = build(s, |vb| quantized_mixformer::MixFormerSequentialForCausalLM::new(&cfg, vb))?;
        s.decode(|ids, _| model.forward(ids))
    }),
    ("quantized_moondream", |s| {
        let cfg = s.config(json!({
            "phi_config": {
                "vocab_size": 64, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_inner": 128, "n_head": 4,
                "rotary_dim": 16, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
                "tie_word_embeddings": false, "pad_vocab_size_multiple": 64,
            },
            "vision_config": {
                "image_embedding_dim": 1152, "model_dim": 64, "hidden_dim": 128, "hidden_features": 64,
                "embed_len": 4, "embed_dim": 1152, "num_blocks": 1, "num_heads": 16,
                "act": "gelu_pytorch_tanh",
            },
        }))?;
        let mut model = build(s, |vb| quantized_moondream::Model::new(&cfg, vb))?;
        let picture = model.vision_encoder().forward(&s.input("image", (1, 3, 28, 28))?)?;
        let text = model.text_model().forward_with_img(&s.whole(&[1], (1, 1))?, &s.ids(4)?, &picture)?;
        Ok(vec![picture, text])
    }),
    ("quantized_phi", |s| {
        let file = Gguf::of("phi2").with("phi2", "attention.head_count_kv", Value::U32(4));
        let file = file.tensor("output_norm.bias", &[64]).tensor("output.bias", &[64]).blocks(&[
            ("attn_norm.bias", &[64]),
            ("attn_qkv.weight", &[192, 64]),
            ("attn_qkv.bias", &[192]),
            ("attn_output.bias", &[64]),
            ("ffn_up.bias", &[128]),
            ("ffn_down.bias", &[64]),
        ]);
        let mut model = file.read(s, |ct, r| quantized_phi::ModelWeights::from_gguf(ct, r, &s.device))?;
        s.decode(|ids, position| model.forward(ids, position))
    }),
    ("quantized_phi3", |s| {
        let file = Gguf::of("phi3").blocks(&[("attn_qkv.weight", &[128, 64]), ("ffn_up.weight", &[256, 64])]);
        let mut model =
            file.read(s, |ct, r| quantized_phi3::ModelWeights::from_gguf(false, ct, r, &s.device))?;
        s.decode(|ids, position| model.forward(ids, position))
    }),
    ("quantized_qwen2", |s| {
        let file = Gguf::of("qwen2").blocks(QKV_BIAS);
        let mut model = file.read(s, |ct, r| quantized_qwen2::ModelWeights::from_gguf(ct, r, &s.device))?;
        s.decode(|ids, position| model.forward(ids, position))
    }),
    ("quantized_qwen3", |s| {
        let file = Gguf::of("qwen3").blocks(QK_NORM);
        let mut model = file.read(s, |ct, r| quantized_qwen3::ModelWeights::from_gguf(ct, r, &s.device))?;
        s.decode(|ids, position| model.forward(ids, position))
    }),
    ("quantized_qwen3_moe", |s| {
        let file = with_experts("qwen3moe").blocks(QK_NORM).blocks(&[
            ("ffn_gate_exps.weight", &[4, 32, 64]),
            ("ffn_up_exps.weight", &[4, 32, 64]),
            ("ffn_down_exps.weight", &[4, 64, 32]),
        ]);
        let mut model =
            file.read(s, |ct, r| quantized_qwen3_moe::GGUFQWenMoE::from_gguf(ct, r, &s.device, s.dtype))?;
        s.decode(|ids, position| model.forward(ids, position))
    }),
    ("quantized_recurrent_gemma", |s| {
        let cfg = wide!(s, {
            "lru_width": 64, "attention_window_size": 16, "conv1d_width": 4, "logits_soft_cap": 30.0,
            "hidden_activation": "gelu_pytorch_tanh", "_block_types": ["recurrent", "attention"],
        });
        let mut model = build(s, |vb| quantized_recurrent_gemma::Model::new(&cfg, vb))?;
        s.decode(|ids, position| model.forward(ids, position))
    }),
    ("quantized_rwkv_v5", |s| {
        let cfg: rwkv_v5::Config = s.config(rwkv())?;
        let state = rwkv_v5::State::new(1, &cfg, &s.device)?;
        recur!(s, build(s, |vb| quantized_rwkv_v5::Model::new(&cfg, vb))?, state)
    }),
    ("quantized_rwkv_v6", |s| {
        let cfg: rwkv_v5::Config = s.config(rwkv())?;
        let state = rwkv_v5::State::new(1, &cfg, &s.device)?;
        recur!(s, build(s, |vb| quantized_rwkv_v6::Model::new(&cfg, vb))?, state)
    }),
    ("quantized_stable_lm", |s| {
        let cfg = wide!(s, {"use_qkv_bias": true});
        let mut model = build(s, |vb| quantized_stable_lm::Model::new(&cfg, vb))?;
        s.decode(|ids, position| model.forward(ids, position))
    }),
    ("quantized_t5", |s| {
        let mut names = t5_names();
        names["d_model"] = json!(64);
        let cfg = s.config(names)?;
        let mut model = build(s, |vb| quantized_t5::T5ForConditionalGeneration::load(vb, &cfg))?;
        let sentence = model.encode(&s.ids(7)?)?;
        let mut outputs = s.decode(|ids, _| model.decode(ids, &sentence))?;
        outputs.push(sentence);
        Ok(outputs)
    }),
    ("smol::quantized_smollm3", |s| {
        // It takes the rows of queries and keys 128 at a time from each half.
        let columns = 256;
        let file = ["embedding_length", "attention.head_count_kv", "rope.dimension_count"]
            .into_iter()
            .zip([columns as u32, 4, 64])
            .fold(Gguf::of("smollm3"), |file, (name, number)| file.with("smollm3", name, Value::U32(number)));
        let (square, down): (&[usize], &[usize]) = (&[columns, columns], &[columns, 128]);
        let file = file.tensor("token_embd.weight", &[64, columns]).tensor("output_norm.weight", &[columns]);
        let file = file.blocks(&[
            ("attn_norm.weight", &[columns]),
            ("ffn_norm.weight", &[columns]),
            ("attn_q.weight", square),
            ("attn_k.weight", square),
            ("attn_v.weight", square),
            ("attn_output.weight", square),
            ("ffn_gate.weight", &[128, columns]),
            ("ffn_up.weight", &[128, columns]),
            ("ffn_down.weight", down),
        ]);
        let mut model = file.open(s, "smollm3", |path| {
            smol::quantized_smollm3::QuantizedModelForCausalLM::from_gguf(path, &s.device, false)
        })?;
        s.decode(|ids, position| model.forward(ids, position))
    }),
    ("whisper::quantized_model", |s| {
        let mut names = audio::whisper_names();
        names["d_model"] = json!(64);
        let cfg: whisper::Config = s.config(names)?;
        let mut model = build(s, |vb| whisper::quantized_model::Whisper::load(&vb, cfg.clone()))?;
        let sound = model.encoder.forward(&s.input("sound", (1, 8, 16))?, true)?;
        let text: Tensor = model.decoder.forward(&s.ids(4)?, &sound, true)?;
        Ok(vec![model.decoder.final_linear(&text)?, sound])
    }),
];

/// What builds and runs a model.
#[cfg(test)]
mod tests {
    #[test]
    fn names_are_different() {
        let mut names: Vec<_> = crate::all().iter().map(|model| model.name).collect();
        names.dedup();
        assert_eq!(names.len(), crate::all().len());
    }
}
