"""Suggestions for an unknown setting: its correct spelling, or the same setting in another section or toolkit."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path

# Names of settings in PyTorch, Hugging Face, fairseq, OpenNMT, Marian and JoeyNMT.
FOREIGN = {
    alias: name
    for name, aliases in {
        "train.learning_rate": "lr learn_rate peak_lr max_lr lrate",
        "train.steps": "max_steps max_update max_updates train_steps num_steps updates num_train_steps",
        "train.validate_every": "eval_steps valid_freq validation_freq save_steps valid_steps save_freq",
        "train.validate_samples": "max_eval_samples eval_samples",
        "train.warmup": "warmup_steps warmup_updates lr_warmup num_warmup_steps",
        "train.batch_tokens": "batch_size per_device_train_batch_size max_tokens mini_batch_words train_batch_size",
        "train.accumulate_steps": "gradient_accumulation_steps update_freq accum_count accumulation_steps",
        "train.clip_norm": "max_grad_norm grad_clip gradient_clip clip grad_norm max_norm clip_grad_norm",
        "train.label_smoothing": "label_smoothing_factor smoothing",
        "train.average_checkpoints": "average_last_checkpoints",
        "train.ema_decay": "exponential_smoothing use_ema average_decay",
        "train.early_stopping_metric": "metric_for_best_model eval_metric",
        "train.patience": "early_stopping_patience early_stopping",
        "train.init_from": "finetune_from_model pretrained_model train_from load_model",
        "train.schedule": "lr_scheduler lr_scheduler_type scheduler scheduling decay_method",
        "train.optimizer": "optim",
        "train.precision": "fp16 bf16 half amp dtype model_dtype",
        "train.seed": "random_seed",
        "train.threads": "num_threads cpu_threads",
        "train.workers": "num_workers world_size nproc_per_node num_processes",
        "model.d_model": "hidden_size embed_dim embedding_dim dim dim_model n_embd rnn_size model_dim dim_emb",
        "model.d_ff": "ffn_dim dim_feedforward ff_size intermediate_size transformer_ff ffn_embed_dim",
        "model.heads": "num_heads nhead n_head n_heads num_attention_heads attention_heads transformer_heads",
        "model.encoder_layers": "num_encoder_layers enc_layers enc_depth",
        "model.decoder_layers": "num_decoder_layers dec_layers dec_depth",
        "model.encoder_layers and model.decoder_layers": "num_layers layers n_layers n_layer num_hidden_layers depth",
        "model.dropout": "dropout_rate p_drop hidden_dropout transformer_dropout",
        "model.attention_dropout": "attn_dropout dropout_attention",
        "model.tied_embeddings": "tie_word_embeddings share_embeddings share_all_embeddings tie_embeddings",
        "model.max_length": "max_len max_position_embeddings max_seq_len max_source_positions block_size",
        "model.norm": "pre_norm norm_first normalize_before layer_norm",
        "model.positions": "position_encoding positional_encoding",
        "model.activation": "activation_function activation_fn hidden_act",
        "data.vocabulary": "tokenizer_type bpe_type segmentation",
        "data.joint_vocabulary": "share_vocab joined_dictionary joint_vocab",
        "data.subword_sampling": "bpe_dropout",
        "data.data_dir": "path_data",
        "data.max_train_samples": "max_train_examples",
        "data.valid": "dev validation validation_file valid_sets eval_file",
        "data.train": "train_file training train_sets",
        "data.test": "test_file test_sets",
        "clean.deduplicate": "dedup",
        "decode.beam": "beam_size num_beams beam_width",
        "decode.nbest": "n_best num_return_sequences num_hypotheses",
        "decode.alpha": "lenpen beam_alpha normalize",
        "decode.no_repeat_ngram_size": "block_ngram_repeat no_repeat_ngram",
        "decode.sample": "do_sample sampling_decode random_sampling",
        "decode.top_k": "sampling_topk random_sampling_topk topk",
        "decode.top_p": "sampling_topp random_sampling_topp nucleus",
        "decode.temperature": "sampling_temperature random_sampling_temp",
        "decode.batch_size": "decode_batch eval_batch_size",
        "decode.replace_unknown": "replace_unk",
        "decode.max_length": "max_decoding_length max_new_tokens max_output_length",
        "decode.min_length": "min_decoding_length min_len",
    }.items()
    for alias in aliases.split()
}


def suggestion(key: str, known: Collection[str], elsewhere: Mapping[str, str]) -> str:
    """Suggest the setting that an unknown `key` probably means; "" if no name is similar.

    `known` are the keys of the same table. `elsewhere` has the full names of the keys of other tables.
    """
    name = key[:40].lower().replace("-", "_")
    if name in known:
        return f'"{name}"'
    alias = FOREIGN.get(name, "")
    if alias.rpartition(".")[2] in known:
        return alias
    if exact := elsewhere.get(name) or alias:
        return exact
    if near := get_close_matches(name, known, n=1):
        return f'"{near[0]}"'
    far = get_close_matches(name, [*elsewhere, *FOREIGN], n=1, cutoff=0.8)
    return (elsewhere.get(far[0]) or FOREIGN[far[0]]) if far else ""


def near_path(path: str | Path) -> str:
    """Suggest a file with a similar name in the folder of a missing path, as "; did you mean …?"; or return ""."""
    path = Path(path)
    try:
        names = [other.name for other in path.parent.iterdir()]
    except OSError:
        return ""
    near = get_close_matches(path.name, names, n=1)
    return f"; did you mean {path.parent / near[0]}?" if near else ""
