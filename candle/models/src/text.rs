//! Models of text.

use anyhow::Result;
use candle_core::{DType, Module, Tensor};
use candle_transformers::generation::LogitsProcessor;
use candle_transformers::models::*;
use serde_json::{Value, json};

use crate::{Entry, Setup};

/// A decoder whose `forward` has tokens and their position.
macro_rules! decoder {
    ($model:expr) => {{
        let mut model = $model;
        move |ids: &Tensor, position: usize| model.forward(ids, position)
    }};
}

/// A decoder that counts positions itself.
macro_rules! counting {
    ($model:expr) => {{
        let mut model = $model;
        move |ids: &Tensor, _: usize| model.forward(ids)
    }};
}

/// A model with a state beside it.
macro_rules! with_state {
    ($model:expr, $state:expr) => {{
        let (model, mut state) = ($model, $state);
        move |ids: &Tensor, position: usize| model.forward(ids, position, &mut state)
    }};
}

/// One token after the other, through a recurrent model.
fn recur(
    s: &Setup,
    mut step: impl FnMut(&Tensor) -> candle_core::Result<Tensor>,
    shape: &[usize],
) -> Result<Vec<Tensor>> {
    [5, 28, 51].iter().map(|&token| Ok(step(&s.whole(&[token], shape)?)?)).collect()
}

/// Rows of ones, as an attention mask for `count` tokens.
fn mask(s: &Setup, count: usize) -> Result<Tensor> {
    Ok(Tensor::ones((1, count), DType::U32, &s.device)?)
}

const CHATGLM: &str = r#"{"num_layers": 2, "padded_vocab_size": 64, "hidden_size": 32, "ffn_hidden_size": 64,
    "kv_channels": 8, "num_attention_heads": 4, "seq_length": 64, "layernorm_epsilon": 1e-5, "rmsnorm": true,
    "apply_residual_connection_post_layernorm": false, "post_layer_norm": true, "add_bias_linear": false,
    "add_qkv_bias": true, "bias_dropout_fusion": true, "multi_query_attention": true,
    "multi_query_group_num": 2, "apply_query_key_layer_scaling": true, "attention_softmax_in_fp32": true,
    "fp32_residual_connection": false, "rope_ratio": 1}"#;

pub const MODELS: &[Entry] = &[
    ("based", |s| {
        let cfg = s.config(json!({
            "rotary_emb_base": 10000.0, "alt_mixer_layers": [0], "alt_mixer_2_layers": [1],
            "alt_mixer": {"num_heads": 4, "feature_dim": 8, "feature_map": {"input_dim": 8}},
            "alt_mixer_2": {"num_heads": 4, "window_size": 16},
        }))?;
        s.decode(decoder!(based::Model::new(&cfg, s.vb())?))
    }),
    ("bert", |s| {
        let cfg = s.config(json!({"hidden_act": "gelu"}))?;
        let model = bert::BertForMaskedLM::load(s.vb_without(&["bert.bert"]), &cfg)?;
        let ids = s.ids(7)?;
        Ok(vec![model.forward(&ids, &ids.zeros_like()?, Some(&mask(s, 7)?))?])
    }),
    ("bigcode", |s| {
        let cfg = bigcode::Config {
            vocab_size: 64,
            max_position_embeddings: 64,
            num_hidden_layers: 2,
            hidden_size: 32,
            n_inner: Some(64),
            num_attention_heads: 4,
            ..bigcode::Config::starcoder_1b()
        };
        s.decode(decoder!(bigcode::GPTBigCode::load(s.vb(), cfg)?))
    }),
    ("blip_text", |s| {
        let cfg = s.config(json!({"hidden_act": "gelu", "encoder_hidden_size": 32, "is_decoder": true}))?;
        let mut model = blip_text::TextLMHeadModel::new(&cfg, s.vb())?;
        let image = s.input("image", (1, 5, 32))?;
        s.decode(move |ids, _| model.forward(ids, &image))
    }),
    ("chatglm", |s| {
        let cfg = chatglm::Config {
            num_layers: 2,
            padded_vocab_size: 64,
            hidden_size: 32,
            ffn_hidden_size: 64,
            kv_channels: 8,
            num_attention_heads: 4,
            seq_length: 64,
            multi_query_group_num: 2,
            ..chatglm::Config::glm3_6b()
        };
        s.decode(counting!(chatglm::Model::new(&cfg, s.vb())?))
    }),
    ("codegeex4_9b", |s| {
        let cfg = serde_json::from_str(CHATGLM)?;
        s.decode(counting!(codegeex4_9b::Model::new(&cfg, s.vb())?))
    }),
    ("csm", |s| {
        // Both transformers have the size of the smaller one; there is none smaller.
        let cfg = s.config(json!({
            "audio_num_codebooks": 3, "audio_vocab_size": 16, "text_vocab_size": 64,
            "backbone_flavor": "llama-100M", "decoder_flavor": "llama-100M",
        }))?;
        let mut model = csm::Model::new(&cfg, s.vb())?;
        let (tokens, present) = model.text_tokens_and_mask(&[5, 28, 51])?;
        let mut likeliest = LogitsProcessor::new(0, None, None);
        let frame = model.generate_frame(&tokens, &present, 0, &mut likeliest)?;
        let (tokens, present) = model.audio_tokens_and_mask(frame.clone())?;
        let next = model.generate_frame(&tokens, &present, 3, &mut likeliest)?;
        Ok(vec![s.whole(&frame, frame.len())?, s.whole(&next, next.len())?])
    }),
    ("debertav2", |s| {
        let cfg = s.config(json!({
            "hidden_act": "gelu", "relative_attention": true, "max_relative_positions": -1,
            "position_biased_input": false, "pos_att_type": "p2c|c2p", "position_buckets": 16,
            "share_att_key": true, "norm_rel_ebd": "layer_norm", "pooler_hidden_size": 32,
            "pooler_hidden_act": "gelu", "pooler_dropout": 0.0,
            "id2label": {"0": "no", "1": "yes"}, "label2id": {"no": 0, "yes": 1},
        }))?;
        let model = debertav2::DebertaV2SeqClassificationModel::load(s.vb(), &cfg, None)?;
        Ok(vec![model.forward(&s.ids(7)?, None, None)?])
    }),
    ("deepseek2", |s| {
        let cfg = s.config(json!({
            "n_shared_experts": 1, "n_routed_experts": 4, "moe_layer_freq": 1, "first_k_dense_replace": 1,
            "q_lora_rank": 16, "qk_rope_head_dim": 8, "kv_lora_rank": 16, "v_head_dim": 8,
            "qk_nope_head_dim": 8, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0,
            "topk_method": "greedy", "scoring_func": "softmax", "norm_topk_prob": false,
        }))?;
        s.decode(decoder!(deepseek2::DeepSeekV2::new(&cfg, s.vb())?))
    }),
    ("distilbert", |s| {
        let cfg = s.config(json!({
            "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "activation": "gelu",
        }))?;
        let model = distilbert::DistilBertForMaskedLM::load(s.vb(), &cfg)?;
        // One where nothing is seen.
        let hidden: Vec<u8> = (0..49).map(|i| u8::from(i % 7 > i / 7)).collect();
        Ok(vec![model.forward(&s.ids(7)?, &Tensor::from_vec(hidden, (7, 7), &s.device)?)?])
    }),
    ("falcon", |s| {
        let cfg = falcon::Config {
            vocab_size: 64,
            hidden_size: 32,
            num_hidden_layers: 2,
            num_attention_heads: 4,
            ..falcon::Config::falcon7b()
        };
        s.decode(counting!(falcon::Falcon::load(s.vb(), cfg)?))
    }),
    ("gemma", |s| {
        let cfg = s.config(json!({"hidden_act": "gelu_pytorch_tanh"}))?;
        s.decode(decoder!(gemma::Model::new(false, &cfg, s.vb())?))
    }),
    ("gemma2", |s| {
        let cfg = s.config(json!({
            "hidden_activation": "gelu_pytorch_tanh", "final_logit_softcapping": 30.0,
            "attn_logit_softcapping": 50.0,
        }))?;
        s.decode(decoder!(gemma2::Model::new(false, &cfg, s.vb())?))
    }),
    ("gemma3", |s| {
        let cfg = s.config(json!({
            "hidden_activation": "gelu_pytorch_tanh", "final_logit_softcapping": 30.0, "num_key_value_heads": 1, "sliding_window_pattern": 2, "rope_local_base_freq": 10000.0,
        }))?;
        s.decode(decoder!(gemma3::Model::new(false, &cfg, s.vb())?))
    }),
    ("gemma4::text", |s| {
        let cfg = s.config(json!({
            "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 4, "global_head_dim": 16,
            "layer_types": ["sliding_attention", "full_attention"], "tie_word_embeddings": true,
        }))?;
        s.decode(decoder!(gemma4::text::TextModel::new(&cfg, s.vb())?))
    }),
    ("glm4", |s| {
        let cfg = serde_json::from_str(CHATGLM)?;
        s.decode(counting!(glm4::Model::new(&cfg, s.vb())?))
    }),
    ("glm4_new", |s| {
        let cfg = s.config(json!({}))?;
        s.decode(decoder!(glm4_new::ModelForCausalLM::new(&cfg, s.vb())?))
    }),
    ("granite", |s| {
        let cfg = s.config::<granite::GraniteConfig>(json!({}))?.into_config(false);
        let cache = granite::Cache::new(true, s.dtype, &cfg, &s.device)?;
        s.decode(with_state!(granite::Granite::load(s.vb(), &cfg)?, cache))
    }),
    ("granitemoehybrid", |s| {
        let cfg: granitemoehybrid::GraniteMoeHybridConfig =
            s.config(json!({"layer_types": ["attention", "attention"], "shared_intermediate_size": 64}))?;
        let cfg = cfg.into_config(false);
        let cache = granitemoehybrid::GraniteMoeHybridCache::new(true, s.dtype, &cfg, &s.device)?;
        s.decode(with_state!(granitemoehybrid::GraniteMoeHybrid::load(s.vb(), &cfg)?, cache))
    }),
    ("helium", |s| {
        let cfg = s.config(json!({}))?;
        s.decode(decoder!(helium::Model::new(&cfg, s.vb())?))
    }),
    ("jina_bert", |s| {
        let cfg = s.config(json!({"hidden_act": "gelu", "position_embedding_type": "alibi"}))?;
        Ok(vec![jina_bert::BertModel::new(s.vb(), &cfg)?.forward(&s.ids(7)?)?])
    }),
    ("lfm2", |s| {
        let cfg: lfm2::Lfm2Config = s.config(json!({
            "layer_types": ["conv", "full_attention"], "conv_l_cache": 3, "block_multiple_of": 32,
        }))?;
        let cfg = cfg.into_config(false);
        let cache = lfm2::Cache::new(true, s.dtype, &cfg, &s.device)?;
        s.decode(with_state!(lfm2::Model::new(&cfg, s.vb())?, cache))
    }),
    ("llama", |s| {
        let cfg: llama::LlamaConfig = s.config(json!({"rope_scaling": {
            "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32, "rope_type": "llama3",
        }}))?;
        let cfg = cfg.into_config(false);
        let cache = llama::Cache::new(true, s.dtype, &cfg, &s.device)?;
        s.decode(with_state!(llama::Llama::load(s.vb(), &cfg)?, cache))
    }),
    ("llama2_c", |s| {
        let cfg = llama2_c::Config {
            dim: 32,
            hidden_dim: 64,
            n_layers: 2,
            n_heads: 4,
            n_kv_heads: 2,
            vocab_size: 64,
            seq_len: 64,
            norm_eps: 1e-5,
        };
        let cache = llama2_c::Cache::new(true, &cfg, s.vb().pp("rot"))?;
        s.decode(with_state!(llama2_c::Llama::load(s.vb(), cfg.clone())?, cache))
    }),
    ("mamba", |s| {
        let cfg: mamba::Config = s.config(json!({"pad_vocab_size_multiple": 8}))?;
        let (model, mut state) =
            (mamba::Model::new(&cfg, s.vb())?, mamba::State::new(1, &cfg, s.dtype, &s.device)?);
        recur(s, |ids| model.forward(ids, &mut state), &[1])
    }),
    ("mamba2", |s| {
        let cfg = mamba2::Config {
            d_model: 32,
            n_layer: 2,
            vocab_size: 64,
            d_state: 16,
            expand: 2,
            headdim: 8,
            ngroups: 1,
            pad_vocab_size_multiple: 8,
        };
        let (model, mut state) =
            (mamba2::Model::new(&cfg, s.vb())?, mamba2::State::new(1, &cfg, s.dtype, &s.device)?);
        let prompt = model.forward_prefill(&s.ids(8)?, &mut state, 4)?;
        let mut outputs = recur(s, |ids| model.forward(ids, &mut state), &[1])?;
        outputs.push(prompt);
        Ok(outputs)
    }),
    ("marian", |s| {
        let cfg = marian::Config {
            vocab_size: 64,
            decoder_vocab_size: None,
            max_position_embeddings: 64,
            encoder_layers: 2,
            encoder_ffn_dim: 64,
            encoder_attention_heads: 4,
            decoder_layers: 2,
            decoder_ffn_dim: 64,
            decoder_attention_heads: 4,
            d_model: 32,
            ..marian::Config::opus_mt_fr_en()
        };
        let mut model = marian::MTModel::new(&cfg, s.vb())?;
        let sentence = model.encoder().forward(&s.ids(7)?, 0)?;
        let mut outputs = s.decode(|ids, position| model.decode(ids, &sentence, position))?;
        outputs.push(sentence);
        Ok(outputs)
    }),
    ("mistral", |s| {
        let cfg = s.config(json!({}))?;
        s.decode(decoder!(mistral::Model::new(&cfg, s.vb())?))
    }),
    ("mixformer", |s| {
        let cfg = s.config(json!({
            "rotary_dim": 8, "activation_function": "gelu_new", "pad_vocab_size_multiple": 64,
        }))?;
        s.decode(counting!(mixformer::MixFormerSequentialForCausalLM::new(&cfg, s.vb())?))
    }),
    ("mixtral", |s| {
        let cfg = s.config(json!({}))?;
        s.decode(decoder!(mixtral::Model::new(&cfg, s.vb())?))
    }),
    ("modernbert", |s| {
        let cfg = s.config(json!({
            "global_attn_every_n_layers": 2, "global_rope_theta": 160000.0, "local_attention": 4,
            "local_rope_theta": 10000.0,
        }))?;
        let model = modernbert::ModernBertForMaskedLM::load(s.vb(), &cfg)?;
        Ok(vec![model.forward(&s.ids(7)?, &mask(s, 7)?)?])
    }),
    ("nomic_bert", |s| {
        let cfg = s.config(json!({
            "rotary_emb_fraction": 1.0, "rotary_emb_base": 1000.0, "rotary_emb_interleaved": false,
            "qkv_proj_bias": false, "mlp_fc1_bias": false, "mlp_fc2_bias": false, "prenorm": false,
            "activation_function": "swiglu",
        }))?;
        let model = nomic_bert::NomicBertModel::load(s.vb(), &cfg)?;
        Ok(vec![model.forward(&s.ids(7)?, None, Some(&mask(s, 7)?))?])
    }),
    ("nvembed_v2::embedding", |s| {
        // The whole model has mistral's size of 7 billion; its embeddings may be smaller.
        let cfg = s.config(json!({}))?;
        let mut model = nvembed_v2::embedding::Model::new(&cfg, s.vb())?;
        let present = Tensor::ones((1, 7), s.dtype, &s.device)?;
        Ok(vec![model.forward(&present, &s.ids(7)?, s.dtype)?])
    }),
    ("olmo", |s| {
        let cfg = s.config(json!({"clip_qkv": 1.0}))?;
        s.decode(decoder!(olmo::Model::new(&cfg, s.vb())?))
    }),
    ("olmo2", |s| {
        let cfg = s.config(json!({}))?;
        s.decode(decoder!(olmo2::Model::new(&cfg, s.vb())?))
    }),
    ("openclip", |s| {
        let cfg = openclip::text_model::Config {
            vocab_size: 64,
            embed_dim: 32,
            intermediate_size: 64,
            max_position_embeddings: 16,
            pad_with: None,
            num_hidden_layers: 2,
            num_attention_heads: 4,
            projection_dim: 16,
        };
        let model = openclip::text_model::OpenClipTextTransformer::new(s.vb(), &cfg)?;
        Ok(vec![Module::forward(&model, &s.ids(7)?)?])
    }),
    ("phi", |s| {
        let cfg = s.config(json!({"hidden_act": "gelu_new", "qk_layernorm": false}))?;
        s.decode(counting!(phi::Model::new(&cfg, s.vb())?))
    }),
    ("phi3", |s| {
        let cfg = s.config(json!({"partial_rotary_factor": null}))?;
        s.decode(decoder!(phi3::Model::new(&cfg, s.vb())?))
    }),
    ("qwen2", |s| {
        let cfg = s.config(json!({}))?;
        s.decode(decoder!(qwen2::ModelForCausalLM::new(&cfg, s.vb())?))
    }),
    ("qwen2_moe", |s| {
        let cfg = s.config(json!({}))?;
        s.decode(decoder!(qwen2_moe::Model::new(&cfg, s.vb())?))
    }),
    ("qwen3", |s| {
        let cfg = s.config(json!({}))?;
        s.decode(decoder!(qwen3::ModelForCausalLM::new(&cfg, s.vb())?))
    }),
    ("qwen3_moe", |s| {
        let cfg = s.config(json!({}))?;
        s.decode(decoder!(qwen3_moe::ModelForCausalLM::new(&cfg, s.vb())?))
    }),
    ("recurrent_gemma", |s| {
        let cfg = s.config(json!({
            "lru_width": 32, "attention_window_size": 16, "conv1d_width": 4, "logits_soft_cap": 30.0,
            "hidden_activation": "gelu_pytorch_tanh", "_block_types": ["recurrent", "attention"],
        }))?;
        s.decode(decoder!(recurrent_gemma::Model::new(&cfg, s.vb())?))
    }),
    ("rwkv_v5", |s| {
        let cfg: rwkv_v5::Config = s.config(rwkv())?;
        let (model, mut state) =
            (rwkv_v5::Model::new(&cfg, s.vb())?, rwkv_v5::State::new(1, &cfg, &s.device)?);
        recur(s, |ids| model.forward(ids, &mut state), &[1, 1])
    }),
    ("rwkv_v6", |s| {
        let cfg: rwkv_v6::Config = s.config(rwkv())?;
        let (model, mut state) =
            (rwkv_v6::Model::new(&cfg, s.vb())?, rwkv_v6::State::new(1, &cfg, &s.device)?);
        recur(s, |ids| model.forward(ids, &mut state), &[1, 1])
    }),
    ("rwkv_v7", |s| {
        let cfg: rwkv_v7::Config = s.config(json!({"version": "V7", "head_size": 8}))?;
        const RANKS: &[(&str, &[usize])] =
            &[("w1", &[32, 8]), ("a1", &[32, 8]), ("v1", &[32, 8]), ("g1", &[32, 8])];
        let model = rwkv_v7::Model::new(&cfg, s.vb_with(&[], RANKS))?;
        let mut state = rwkv_v7::State::new_with_dtype(&cfg, &s.device, s.dtype)?;
        let prompt = model.forward_seq(&[5, 28, 51], &mut state)?;
        Ok(vec![prompt, model.forward(&s.whole(&[17], (1, 1))?, &mut state, &[17])?])
    }),
    ("smol::smollm3", |s| {
        let cfg = s.config(json!({"no_rope_layer_interval": 2}))?;
        s.decode(decoder!(smol::smollm3::ModelForCausalLM::new(&cfg, s.vb())?))
    }),
    ("stable_lm", |s| {
        let cfg = s.config(json!({"use_qkv_bias": true}))?;
        s.decode(decoder!(stable_lm::Model::new(&cfg, s.vb())?))
    }),
    ("starcoder2", |s| {
        let cfg = s.config(json!({"hidden_act": "gelu_pytorch_tanh", "use_bias": true}))?;
        s.decode(decoder!(starcoder2::Model::new(&cfg, s.vb())?))
    }),
    ("stella_en_v5 large", |s| stella(s, stella_en_v5::Config::new_1_5_b_v5, 2)),
    ("stella_en_v5 small", |s| stella(s, stella_en_v5::Config::new_400_m_v5, 4)),
    ("t5", |s| {
        let cfg = s.config(t5_names())?;
        let mut model = t5::T5ForConditionalGeneration::load(s.vb(), &cfg)?;
        let sentence = model.encode(&s.ids(7)?)?;
        let mut outputs = s.decode(|ids, _| model.decode(ids, &sentence))?;
        outputs.push(sentence);
        Ok(outputs)
    }),
    ("xlm_roberta", |s| {
        let cfg = s.config(json!({"hidden_act": "gelu", "position_embedding_type": "absolute"}))?;
        let model = xlm_roberta::XLMRobertaForMaskedLM::new(&cfg, s.vb())?;
        let ids = s.ids(7)?;
        Ok(vec![model.forward(&ids, &mask(s, 7)?, &ids.zeros_like()?, None, None, None)?])
    }),
];

fn stella(
    s: &Setup,
    published: fn(stella_en_v5::EmbedDim) -> stella_en_v5::Config,
    kv_heads: usize,
) -> Result<Vec<Tensor>> {
    let cfg = stella_en_v5::Config {
        vocab_size: 64,
        hidden_size: 32,
        intermediate_size: 64,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: kv_heads,
        max_position_embeddings: 64,
        embed_head: stella_en_v5::EmbedHead { in_features: 32, out_features: 16 },
        ..published(stella_en_v5::EmbedDim::Dim256)
    };
    let mut model = stella_en_v5::EmbeddingModel::new(&cfg, s.vb(), s.vb().pp("head"))?;
    Ok(vec![model.forward_norm(&s.ids(7)?, &mask(s, 7)?)?])
}

/// RWKV's names.
pub fn rwkv() -> Value {
    // What is called a number of heads is their size.
    json!({"attention_hidden_size": 32, "head_size": 8, "num_attention_heads": 8, "rescale_every": 6})
}

/// T5's names.
pub fn t5_names() -> Value {
    json!({
        "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "relative_attention_num_buckets": 8,
        "dropout_rate": 0.0, "layer_norm_epsilon": 1e-6, "initializer_factor": 1.0,
        "feed_forward_proj": "gated-gelu", "is_encoder_decoder": true, "decoder_start_token_id": 0,
    })
}
