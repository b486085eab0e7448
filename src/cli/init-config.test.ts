import { expect, test } from "vitest";
import { ollamaBase } from "./init-config.ts";

test.each([
  [undefined, "http://127.0.0.1:11434"],
  ["", "http://127.0.0.1:11434"],
  [" ", "http://127.0.0.1:11434"],
  [":8080", "http://127.0.0.1:8080"],
  ["0.0.0.0", "http://127.0.0.1:11434"],
  ["0.0.0.0:80", "http://127.0.0.1"],
  ["box", "http://box:11434"],
  ["box:1234", "http://box:1234"],
  ["[::1]", "http://[::1]:11434"],
  ["http://box", "http://box"],
  ["https://box:1/ollama/", "https://box:1/ollama"],
  ["http://ann:secret@box", null],
  ["no host at all", null],
])("OLLAMA_HOST %j is reached at %j", (host, expected) => {
  expect(ollamaBase(host)).toBe(expected);
});
