import fc from "fast-check";

/** Generators for the contents of session files. */

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const word = fc.stringMatching(/^[a-z]{1,8}$/);
const time = fc.integer({ min: 0, max: 4e12 });
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

/** Removes an object's undefined fields. */
function record(fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Record<string, unknown>> {
  return fc
    .record(fields)
    .map((value) => Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)));
}

/** JSON that JSON.parse returns unchanged. */
const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);

/** A part's provider metadata, keyed by provider name. */
export const providerMetadata = fc.dictionary(
  fc.oneof(fc.constantFrom("anthropic", "openai", "google", "mistral", "local"), word),
  fc.dictionary(fc.oneof(word, fc.constantFrom("itemId", "cached", "__proto__")), json, { maxKeys: 3 }),
  { maxKeys: 2 },
);
const ours = (fields: Record<string, fc.Arbitrary<unknown>> = {}) =>
  maybe(record({ providerMetadata: maybe(providerMetadata), ...fields }));

const textBlock = record({ type: fc.constant("text"), text, textSignature: maybe(word), skein: ours() });
const blobBlock = record({
  type: fc.constant("text"),
  text,
  skein: fc.constant({ blob: { sha256: "ab", bytes: 5, mimeType: "image/png", was: "image" } }),
});
const imageBlock = record({
  type: fc.constant("image"),
  data: fc.constant("aGk="),
  mimeType: fc.constant("image/png"),
  skein: ours({ filename: maybe(word) }),
});
const thinkingBlock = record({
  type: fc.constant("thinking"),
  thinking: text,
  thinkingSignature: maybe(word),
  redacted: maybe(fc.boolean()),
  skein: ours(),
});
const toolCallBlock = record({
  type: fc.constant("toolCall"),
  id: word,
  name: word,
  arguments: fc.dictionary(word, json, { maxKeys: 3 }),
  thoughtSignature: maybe(word),
  skein: ours({ invalidInput: maybe(fc.boolean()) }),
});
const strangeBlock = record({ type: word.map((each) => `x-${each}`), anything: json });
const blocks = fc.array(fc.oneof(textBlock, blobBlock, imageBlock, strangeBlock), { maxLength: 3 });
const assistantBlocks = fc.array(fc.oneof(textBlock, thinkingBlock, toolCallBlock, strangeBlock), {
  maxLength: 3,
});
const content = fc.oneof(text, blocks);

const number = fc.double({ noNaN: true, noDefaultInfinity: true, min: 0, max: 1e6 });
const usage = fc.constant({
  input: 3,
  output: 5,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 8,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
});
const provenance = record({
  kind: fc.constantFrom("external_user", "inter_session", "internal_system"),
  sourceSessionKey: maybe(word),
  rootId: maybe(word),
  hops: maybe(fc.nat(8)),
});

const user = record({
  role: fc.constant("user"),
  content,
  timestamp: time,
  provenance: maybe(provenance),
  skein: ours(),
});
const assistant = record({
  role: fc.constant("assistant"),
  content: assistantBlocks,
  api: word,
  provider: word,
  model: word,
  usage,
  stopReason: fc.constantFrom("stop", "length", "toolUse", "error", "aborted"),
  errorMessage: maybe(text),
  timestamp: time,
  skein: ours({
    response: maybe(fc.dictionary(word, json, { maxKeys: 2 })),
    usage: maybe(fc.dictionary(word, json, { maxKeys: 2 })),
    finishReason: maybe(fc.dictionary(word, json, { maxKeys: 2 })),
  }),
});
const toolResult = record({
  role: fc.constant("toolResult"),
  toolCallId: word,
  toolName: word,
  content: blocks,
  details: maybe(json),
  isError: fc.boolean(),
  timestamp: time,
  skein: ours({ groupMetadata: maybe(providerMetadata), output: maybe(word) }),
});
const bashExecution = record({
  role: fc.constant("bashExecution"),
  command: text,
  output: text,
  exitCode: maybe(fc.nat(3)),
  cancelled: fc.boolean(),
  truncated: fc.boolean(),
  excludeFromContext: maybe(fc.boolean()),
  timestamp: time,
});
const customRole = record({
  role: fc.constant("custom"),
  customType: word,
  content,
  display: fc.boolean(),
  details: maybe(json),
  timestamp: time,
});

/** A message that Skein would write. */
export const writtenMessage = fc.oneof(user, assistant, toolResult, bashExecution, customRole);

/** Drafts of the types that have no target. */
export const draft = fc.oneof(
  {
    weight: 6,
    arbitrary: record({ type: fc.constant("message"), message: writtenMessage, extra: maybe(json) }),
  },
  record({ type: fc.constant("model_change"), provider: word, modelId: word }),
  record({ type: fc.constant("thinking_level_change"), thinkingLevel: word }),
  record({ type: fc.constant("custom"), customType: word, data: maybe(json) }),
  record({
    type: fc.constant("custom_message"),
    customType: word,
    content,
    display: fc.boolean(),
    details: maybe(json),
  }),
  record({ type: fc.constant("session_info"), name: maybe(word) }),
);

const system = record({ role: fc.constant("system"), content, timestamp: maybe(time) });
const strangeRole = record({ role: word.map((each) => `x-${each}`), content: json });
const bareAssistant = record({
  role: fc.constant("assistant"),
  content: assistantBlocks,
  usage: maybe(record({ input: number })),
});
const anyMessage = fc.oneof(writtenMessage, system, strangeRole, bareAssistant);

const base = {
  id: word,
  parentId: fc.option(word, { nil: null }),
  timestamp: time.map((each) => new Date(each).toISOString()),
};
const entry = (type: string, fields: Record<string, fc.Arbitrary<unknown>>) =>
  record({ type: fc.constant(type), ...base, ...fields, future: maybe(json) });

/** Any entry that a file can contain, of a known or unknown type. */
export const anyEntry = fc.oneof(
  { weight: 4, arbitrary: entry("message", { message: anyMessage }) },
  entry("model_change", { provider: word, modelId: word }),
  entry("thinking_level_change", { thinkingLevel: word }),
  entry("compaction", {
    summary: text,
    firstKeptEntryId: maybe(word),
    tokensBefore: maybe(number),
    details: maybe(json),
  }),
  entry("branch_summary", { fromId: maybe(word), summary: text, fromHook: maybe(fc.boolean()) }),
  entry("custom", { customType: word, data: maybe(json) }),
  entry("custom_message", { customType: word, content, display: maybe(fc.boolean()) }),
  entry("label", { targetId: word, label: maybe(text) }),
  entry("session_info", { name: maybe(text) }),
  entry("usage", { provider: maybe(word), model: maybe(word), usage: maybe(usage) }),
  entry("context_edit", { targetId: word, replacement: fc.oneof(fc.constant(null), record({ content })) }),
  entry("leaf", { targetId: fc.option(word, { nil: null }) }),
  entry("active_tools_change", { activeToolNames: fc.array(word, { maxLength: 3 }) }),
  fc.tuple(word, entry("x", { anything: json })).map(([type, value]) => ({ ...value, type: `x_${type}` })),
);

/** The same value with one field changed or removed somewhere. */
export const damagedEntry = fc
  .tuple(anyEntry, fc.nat(), fc.oneof(fc.constant(undefined), json, text, fc.constant(null), fc.constant([])))
  .map(([value, where, replacement]) => damaged(value, where, replacement));

function damaged<T>(value: T, where: number, replacement: unknown): T {
  const copy = structuredClone(value);
  const places = placesIn(copy);
  const place = places[where % places.length];
  if (place === undefined) return copy;
  if (replacement !== undefined) place.holder[place.key] = replacement;
  else if (Array.isArray(place.holder)) place.holder.splice(Number(place.key), 1);
  else delete place.holder[place.key];
  return copy;
}

/** Lines of a file with some of them damaged, lost, repeated or moved. */
export function damagedLines(lines: readonly object[]): fc.Arbitrary<string> {
  const replacement = fc.oneof(
    fc.constantFrom<unknown>(undefined, null, [], {}, "", 0, true, "text", "__proto__"),
    json,
  );
  const edit = fc.tuple(
    fc.constantFrom("field", "drop", "repeat", "move", "cut"),
    fc.nat(),
    fc.nat(),
    replacement,
  );
  return fc.array(edit, { minLength: 1, maxLength: 12 }).map((edits) => {
    const texts = lines.map((line) => JSON.stringify(line));
    for (const [kind, which, where, value] of edits) {
      const index = which % texts.length;
      const line = texts[index] as string;
      if (kind === "field") texts[index] = JSON.stringify(damaged(parsed(line), where, value));
      else if (kind === "drop" && texts.length > 1) texts.splice(index, 1);
      else if (kind === "repeat") texts.splice(where % texts.length, 0, line);
      else if (kind === "move") texts.splice(where % texts.length, 0, ...texts.splice(index, 1));
      else if (kind === "cut") texts[index] = line.slice(0, where % (line.length + 1));
    }
    return texts.join("\n");
  });
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return line;
  }
}

type Holder = Record<string, unknown>;

function placesIn(value: unknown): { holder: Holder; key: string }[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.keys(value).flatMap((key) => [
    { holder: value as Holder, key },
    ...placesIn((value as Holder)[key]),
  ]);
}
