import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Content, Message, Provenance } from "../../core/messages.ts";
import { promptBlocks } from "./prompt-blocks.ts";

const bytes = new Uint8Array([1, 2, 3, 4]);
const blob = (sha256: string) => (sha256 === "there" ? bytes : null);
const user = (content: Content, provenance?: Provenance): Message => ({
  role: "user",
  content,
  ...(provenance !== undefined && { provenance }),
});
const other: Provenance = {
  kind: "inter_session",
  sourceSessionKey: "agent:main:main",
  sourceTool: "sessions_send",
};
const mark = "[Inter-session message] sourceSession=agent:main:main sourceTool=sessions_send";
const image = { type: "image" as const, data: "iVBORw==", mimeType: "image/png" };
const moved = (sha256: string) => ({
  type: "text" as const,
  text: `[image image/png, 4 bytes, blob ${sha256}]`,
  skein: { blob: { sha256, bytes: 4, mimeType: "image/png", was: "image" } },
});
const text = (value: string) => ({ type: "text", text: value });

describe("a prompt", () => {
  it("contains texts and images in order, including blobs", async () => {
    const content = [text("Look:"), image, moved("there"), text("")] as Content;
    expect(await promptBlocks([user(content)], { image: true }, blob)).toEqual([
      text("Look:"),
      image,
      { type: "image", data: "AQIDBA==", mimeType: "image/png" },
    ]);
  });

  it("replaces each image that the agent does not accept, or that is missing, by a text", async () => {
    const content = [image, moved("there")];
    for (const capabilities of [undefined, null, {}, { image: false }])
      expect(await promptBlocks([user(content)], capabilities, blob)).toEqual([
        text("[image: image/png, 4 bytes: this model does not accept images]"),
        text("[image: image/png, 4 bytes: this model does not accept images]"),
      ]);
    expect(await promptBlocks([user([moved("gone")])], { image: true }, blob)).toEqual([
      text("[image: image/png, 4 bytes: could not be loaded]"),
    ]);
    const many = await promptBlocks([user(Array.from({ length: 25 }, () => image))], { image: true }, blob);
    expect(many.filter(({ type }) => type === "image")).toHaveLength(20);
    expect(many.at(-1)).toEqual(text("[image: image/png, 4 bytes: omitted, because there are too many]"));
    const large = { ...moved("there"), skein: { blob: { ...moved("there").skein.blob, bytes: 1e9 } } };
    expect(await promptBlocks([user([large])], { image: true }, blob)).toMatchObject([{ type: "text" }]);
  });

  it("skips messages that are not a user's, and unknown block types", async () => {
    const strange = { type: "hologram" } as unknown as Exclude<Content, string>[number];
    const messages: Message[] = [{ role: "system", content: "x" }, user([strange]), user("hi")];
    expect(await promptBlocks(messages, { image: true }, blob)).toEqual([text("hi")]);
    expect(await promptBlocks([], {}, blob)).toEqual([]);
  });

  it("names the session that sent a message, also before an image", async () => {
    expect(await promptBlocks([user("Go on", other), user("Stop")], {}, blob)).toEqual([
      text(`${mark}\n\`\`\`\nGo on\n\`\`\`\n\n`),
      text("Stop"),
    ]);
    expect(await promptBlocks([user([moved("there")], other)], { image: true }, blob)).toMatchObject([
      text(mark),
      { type: "image" },
    ]);
    expect(await promptBlocks([user(mark)], {}, blob)).toEqual([text(`\\${mark}`)]);
  });

  const rows: [string, Message, string][] = [
    ["a person's", user("/compact"), "/compact"],
    [
      "a person's by a channel",
      user("/compact", { kind: "external_user", sourceChannel: "slack" }),
      "/compact",
    ],
    ["our own", user("/compact", { kind: "internal_system" }), "Message:\n/compact"],
    [
      "Skein's own text after invisible characters",
      user("\u200b \n/compact", { kind: "internal_system" }),
      "Message:\n\u200b \n/compact",
    ],
    ["another session's", user("/compact", other), `${mark}\n\`\`\`\n/compact\n\`\`\``],
  ];
  for (const [name, message, expected] of rows)
    it(`keeps a slash command only if a person typed it: ${name}`, async () => {
      expect(await promptBlocks([message], {}, blob)).toEqual([text(expected)]);
    });

  it("never starts with a slash unless a person wrote it", async () => {
    const words = fc.oneof(fc.string(), fc.constantFrom("/", " /x", "\t\n/x", "\u00ad/x"));
    const blocks = fc.array(words.map((each) => ({ type: "text" as const, text: each })));
    const content: fc.Arbitrary<Content> = fc.oneof(words, blocks);
    const kind = fc.constantFrom("inter_session", "internal_system", "of later versions");
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(content, kind)), async (all) => {
        const messages = all.map(([said, from]) => user(said, { kind: from }));
        for (const block of await promptBlocks(messages, {}, blob))
          expect(block.type === "text" && block.text.trimStart().startsWith("/")).toBe(false);
      }),
    );
  });
});
