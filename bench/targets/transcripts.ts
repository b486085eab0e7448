import type { Target } from "../target.ts";
import { at } from "../target.ts";

export const preparing: readonly Target[] = [
  {
    what: "pipeline, 10k clean messages",
    us: at("pipeline", "10k clean", "skein pipeline"),
    against: at("pipeline", "10k clean", "naively chained"),
    goal: { kind: "at most", value: 10 },
  },
  {
    what: "pipeline, 10k damaged messages",
    us: at("pipeline", "10k damaged", "skein pipeline"),
    against: at("pipeline", "10k damaged", "naively chained"),
    goal: { kind: "at most", value: 50 },
  },
  {
    what: "… linear: 100k compared with 10k, damaged",
    us: at("pipeline", "100k damaged", "skein pipeline"),
    against: at("pipeline", "10k damaged", "skein pipeline"),
    goal: { kind: "within", times: 12 },
  },
];

export const counting: readonly Target[] = [
  {
    what: "estimate the tokens of English text",
    us: at("estimate", "english", "skein estimate", "mbPerSecond"),
    against: at("estimate", "english", "gpt-tokenizer", "mbPerSecond"),
    goal: { kind: "more", times: 10 },
  },
  {
    what: "… error of the worst sample",
    us: at("estimate", "all samples", "skein estimate", "worstPercent"),
    goal: { kind: "at most", value: 15 },
  },
];

/** 100 MB/s. */
export const redacting: readonly Target[] = [
  {
    what: "redact 10 MB of mixed text",
    us: at("redaction", "10 MB mixed", "skein redaction"),
    against: at("redaction", "10 MB mixed", "one regex after another"),
    goal: { kind: "at most", value: 100 },
  },
  {
    what: "… linear: 10 MB compared with 1 MB, hostile",
    us: at("redaction", "10 MB hostile", "skein redaction"),
    against: at("redaction", "1 MB hostile", "skein redaction"),
    goal: { kind: "within", times: 12 },
  },
];
