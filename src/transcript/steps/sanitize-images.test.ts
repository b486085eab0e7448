import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { gifOf, jpegOf, pngOf, webpOf } from "../../../test/support/images.ts";
import { readImageHeader } from "../../core/image-header.ts";
import type { ImageBlock, TextBlock } from "../../core/messages.ts";
import type { ImageLimits, ImagePort, StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import { EntryIds, isSaid, replaceMessage } from "../derive.ts";
import { resolveTranscriptPolicy } from "../policy.ts";
import { moveResultImages } from "./move-result-images.ts";
import { sanitizeImages } from "./sanitize-images.ts";

type Block = TextBlock | ImageBlock;

const limits: ImageLimits = { maxSide: 1200, maxBytes: 10_000, maxCount: 100, maxTotalBytes: 1_000_000 };
const policyOf = (
  images: Partial<ImageLimits> | null = {},
  toolResultImages: "inside" | "behind" = "inside",
) =>
  resolveTranscriptPolicy({
    provider: "anthropic",
    model: "m",
    overrides: { images: images === null ? null : { ...limits, ...images }, toolResultImages },
  });
const record = new EntryIds().recorder("sanitizeImages");

const image = (bytes: Buffer, mimeType = "image/png"): ImageBlock => ({
  type: "image",
  data: bytes.toString("base64"),
  mimeType,
});
const small = image(pngOf(20, 10));
const text = (said: string): TextBlock => ({ type: "text", text: said });
const blobOf = (sha256: string, bytes = 123_000): TextBlock => ({
  type: "text",
  text: `[image image/png, ${bytes} bytes, blob ${sha256}]`,
  skein: { blob: { sha256, bytes, mimeType: "image/png", was: "image" } },
});
const user = (...content: Block[]): TranscriptMessage => ({ role: "user", content });
const answer = (said = "yes"): TranscriptMessage => ({ role: "assistant", content: [text(said)] });
const result = (id: string, ...content: Block[]) =>
  ({ role: "toolResult", toolCallId: id, toolName: "look", content }) satisfies TranscriptMessage;

/** Runs the two steps. The second step runs once all results are in place. */
function moved({ messages, changes }: StepResult, policy: TranscriptPolicy): StepResult {
  const after = moveResultImages(messages, { policy, record });
  return { messages: after.messages, changes: [...changes, ...after.changes] };
}

/** Runs the step and fails if it has to wait. */
function atOnce(messages: readonly TranscriptMessage[], policy = policyOf(), images?: ImagePort): StepResult {
  const done = sanitizeImages(messages, { policy, record, ...(images === undefined ? {} : { images }) });
  if (done instanceof Promise) throw new Error("it waited");
  return moved(done, policy);
}
const later = async (messages: readonly TranscriptMessage[], images: ImagePort, policy = policyOf()) =>
  moved(await sanitizeImages(messages, { policy, images, record }), policy);
const blocksOf = ({ messages }: StepResult) =>
  messages.flatMap(({ role, content }) =>
    role === "assistant" || typeof content === "string" ? [] : content,
  );
const kindsOf = ({ changes }: StepResult) => changes.map(({ kind }) => kind);
const blob = vi.fn(async () => pngOf(1, 1));
const unaskedPort: ImagePort = { blob };
afterEach(() => {
  expect(blob).not.toHaveBeenCalled();
});

describe("nothing to do", () => {
  test("returns the same array at once", () => {
    const clean: TranscriptMessage[][] = [
      [],
      [{ role: "user", content: "Hello" }, answer(), user(text("And?"))],
      [user(text("Look:"), small), answer(), result("t", small)],
      [
        user({
          ...text("cut"),
          skein: { blob: { sha256: "a", bytes: 9, mimeType: "text/plain", was: "text" } },
        }),
      ],
      [user({ type: "video", url: "x" } as never)],
    ];
    for (const messages of clean) {
      const done = atOnce(messages);
      expect(done.messages).toBe(messages);
      expect(done.changes).toEqual([]);
    }
  });
});

describe("images that cannot be shown", () => {
  test.each<[string, Block, string]>([
    ["text", image(Buffer.from("hello")), "[image: image/png, 5 bytes: could not be read]"],
    ["nothing", image(Buffer.alloc(0)), "[image: image/png, 0 bytes: could not be read]"],
    [
      "invalid base64",
      { ...small, data: "%$§!".repeat(100) },
      "[image: image/png, 300 bytes: could not be read]",
    ],
    [
      "another format",
      image(Buffer.from("BM".padEnd(2000)), "image/bmp"),
      "[image: image/bmp, 2 KB: could not be read]",
    ],
    [
      "no data",
      { type: "image", mimeType: "image/png" } as never,
      "[image: image/png, 0 bytes: could not be read]",
    ],
    [
      "an invalid type",
      { ...small, data: "", mimeType: "x]\n[y" },
      "[image: unknown type, 0 bytes: could not be read]",
    ],
    [
      "half an image",
      image(pngOf(20, 10).subarray(0, 20)),
      "[image: image/png, 20 bytes: could not be read]",
    ],
  ])("[IMG4] %s becomes a text that describes it", (_, block, expected) => {
    const done = atOnce([user(text("Look:"), block), answer(), user(text("And?"))]);
    expect(done.messages[0]?.content).toEqual([text("Look:"), text(expected)]);
    expect(kindsOf(done)).toEqual(["image_removed"]);
  });

  test("[IMG4] a model without vision gets texts for all, and no blob is loaded", () => {
    const messages = [user(small, blobOf("aa")), answer(), result("t", small)];
    const done = atOnce(messages, policyOf(null, "behind"), unaskedPort);
    expect(blocksOf(done)).toEqual([
      text("[image: image/png, 64 bytes: this model does not accept images]"),
      text("[image: image/png, 120 KB: this model does not accept images]"),
      text("[image: image/png, 64 bytes: this model does not accept images]"),
    ]);
  });

  test("[IMG4] a change names its entry, the step and what was done", () => {
    const messages = [user(text("Look:"), image(Buffer.from("hello")))];
    const ids = new EntryIds(messages, ["entry-1"]);
    const done = sanitizeImages(messages, { policy: policyOf(), record: ids.recorder("sanitizeImages") });
    expect(done).toMatchObject({
      changes: [
        {
          step: "sanitizeImages",
          entryId: "entry-1",
          kind: "image_removed",
          note: "An image (image/png, 5 bytes) was replaced with text: could not be read.",
        },
      ],
    });
    expect(isSaid((done as StepResult).messages[0] as TranscriptMessage)).toBe(true);
    expect(messages[0]?.content).toHaveLength(2);
  });
});

describe("the bytes decide", () => {
  test.each([
    ["image/png", pngOf(3, 4)],
    ["image/jpeg", jpegOf(3, 4)],
    ["image/gif", gifOf(3, 4)],
    ["image/webp", webpOf(3, 4)],
  ])("%s with another type is corrected", (mimeType, bytes) => {
    const wrong = mimeType === "image/png" ? "image/jpeg" : "image/png";
    const done = atOnce([user(image(bytes, wrong))]);
    expect(blocksOf(done)).toEqual([image(bytes, mimeType)]);
    expect(kindsOf(done)).toEqual(["image_retyped"]);
    expect(atOnce([user(image(bytes, mimeType))]).changes).toEqual([]);
  });

  test.each<[string, (data: string) => string]>([
    ["a data URL", (data) => `data:image/png;base64,${data}`],
    ["broken lines", (data) => data.replace(/.{20}/g, "$&\r\n")],
    ["the URL alphabet", (data) => data.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")],
    ["surplus bits at the end", (data) => data.replace(/A(=*)$/, "B$1")],
  ])("base64 as %s is repaired", (_, spoil) => {
    const whole = image(Buffer.concat([pngOf(3, 4, 80), Buffer.from([0xfb, 0xff, 0xfe, 0, 0])]));
    const spoilt = { ...whole, data: spoil(whole.data) };
    expect(spoilt.data).not.toBe(whole.data);
    const done = atOnce([user(spoilt)]);
    expect(blocksOf(done)).toEqual([whole]);
    expect(kindsOf(done)).toEqual(["image_mended"]);
  });
});

describe("blobs", () => {
  const bytes = pngOf(30, 20);

  test("[IMG4] a recent image is loaded from its blob, without a wait if the blob answers at once", async () => {
    const messages = [user(text("Look:"), blobOf("aa"))];
    const asked: string[] = [];
    const port: ImagePort = {
      blob: (sha256) => {
        asked.push(sha256);
        return new Uint8Array(bytes);
      },
    };
    const done = atOnce(messages, policyOf(), port);
    expect(blocksOf(done)).toEqual([text("Look:"), image(bytes)]);
    expect(kindsOf(done)).toEqual(["image_loaded"]);
    expect(asked).toEqual(["aa"]);
    expect(await later(messages, { blob: async () => bytes })).toEqual(done);
  });

  test.each<[string, ImagePort]>([
    ["does not exist", { blob: async () => null }],
    ["cannot be read", { blob: () => Promise.reject(new Error("EIO")) }],
    [
      "throws",
      {
        blob: () => {
          throw new Error("EACCES");
        },
      },
    ],
    ["has no source", {}],
  ])("[IMG4] a blob that %s becomes a text", async (_, port) => {
    const done = await later([user(blobOf("aa"))], port);
    expect(blocksOf(done)).toEqual([text("[image: image/png, 120 KB: could not be loaded]")]);
  });

  test("[IMG4] the real type and size of the blob count", async () => {
    const done = await later([user(blobOf("a"), blobOf("b"), blobOf("c"))], {
      blob: async (sha256) =>
        ({ a: gifOf(1, 1), b: Buffer.from("no image"), c: pngOf(9000, 10) })[sha256] ?? null,
    });
    expect(blocksOf(done).map((block) => (block.type === "image" ? block.mimeType : block.text))).toEqual([
      "image/gif",
      "[image: image/png, 120 KB: could not be read]",
      "[image: image/png, 120 KB: too large to show]",
    ]);
    expect(kindsOf(done)).toEqual(["image_loaded", "image_retyped", "image_removed", "image_removed"]);
  });
});

describe("too large", () => {
  const wide = image(pngOf(1201, 10));
  const heavy = image(pngOf(10, 10, 10_001));

  test("[IMG7] images that are too long or too large are shrunk to the limits", async () => {
    const asked: unknown[] = [];
    const port: ImagePort = {
      shrink: async (each, { maxSide, maxBytes }) => {
        asked.push([each.mimeType, maxSide, maxBytes]);
        return { bytes: jpegOf(maxSide, 5), mimeType: "image/jpeg" };
      },
    };
    const done = await later([user(wide, heavy, small)], port);
    expect(blocksOf(done)).toEqual([
      image(jpegOf(1200, 5), "image/jpeg"),
      image(jpegOf(1200, 5), "image/jpeg"),
      small,
    ]);
    expect(asked).toEqual([
      ["image/png", 1200, 10_000],
      ["image/png", 1200, 10_000],
    ]);
    expect(done.changes.map(({ note }) => note)).toEqual([
      "An image (1201 × 10, 64 bytes) was shrunk: 1200 × 5, 47 bytes.",
      "An image (10 × 10, 10 KB) was shrunk: 1200 × 5, 47 bytes.",
    ]);
  });

  test.each<[string, ImagePort]>([
    ["no image library is installed", {}],
    ["shrinking fails", { shrink: async () => null }],
    ["it fails", { shrink: () => Promise.reject(new Error("out of memory")) }],
    ["it is still too large", { shrink: async () => ({ bytes: pngOf(1300, 1), mimeType: "image/png" }) }],
    [
      "the result is not an image",
      { shrink: async () => ({ bytes: Buffer.from("x"), mimeType: "image/png" }) },
    ],
  ])("[IMG7] if %s, it becomes a text", async (_, port) => {
    const done = await later([user(wide)], port);
    expect(blocksOf(done)).toEqual([text("[image: image/png, 64 bytes: too large to show]")]);
  });

  test("[IMG7] an image exactly at the limits stays", () => {
    const messages = [user(image(pngOf(1200, 1200)), image(pngOf(1, 1, 10_000)))];
    expect(atOnce(messages).messages).toBe(messages);
  });
});

describe("old images", () => {
  const shown = (messages: readonly TranscriptMessage[]) =>
    blocksOf(atOnce(messages, policyOf(), unaskedPort)).map(({ type }) => (type === "image" ? 1 : 0));

  test("those older than the last three answered turns become texts, without being read", () => {
    const turn = [user(small), answer()];
    expect(shown([...turn, ...turn, ...turn])).toEqual([1, 1, 1]);
    expect(shown([...turn, ...turn, ...turn, ...turn])).toEqual([0, 1, 1, 1]);
    expect(shown([...turn, ...turn, ...turn, user(small)])).toEqual([1, 1, 1, 1]);
    expect(shown([...turn, ...turn, ...turn, ...turn, user(small)])).toEqual([0, 1, 1, 1, 1]);
  });

  test("are neither loaded nor decoded", () => {
    const turn = [user(text("hi")), answer()];
    const decoding = vi.spyOn(Buffer, "from");
    const done = atOnce(
      [user(blobOf("aa"), small), answer(), ...turn, ...turn, ...turn],
      policyOf(),
      unaskedPort,
    );
    expect(decoding).not.toHaveBeenCalled();
    decoding.mockRestore();
    expect(blocksOf(done).slice(0, 2)).toEqual([
      text("[image: image/png, 120 KB: no longer shown]"),
      text("[image: image/png, 64 bytes: no longer shown]"),
    ]);
  });

  test("consecutive user messages are one turn; tool results belong to the turn they occurred in", () => {
    const call = {
      role: "assistant",
      content: [{ type: "toolCall", id: "t", name: "look", arguments: {} }],
    } as const;
    const long = [
      user(small),
      user(small),
      call,
      result("t", small),
      call,
      result("t", small),
      answer(),
    ] as never[];
    const turn = [user(text("hi")), answer()];
    expect(shown([...long, ...turn, ...turn]).slice(0, 4)).toEqual([1, 1, 1, 1]);
    expect(shown([...long, ...turn, ...turn, ...turn]).slice(0, 4)).toEqual([0, 0, 0, 0]);
  });

  test("a note to the model does not start a turn", () => {
    const custom = {
      role: "custom",
      customType: "skein.note",
      content: "Invalid calls",
      display: false,
    } as const;
    const note = replaceMessage(custom as never, user(text("Invalid calls")));
    expect(shown([user(small), answer(), note, answer(), note, answer(), note, answer()])).toEqual([
      1, 0, 0, 0,
    ]);
  });

  test("an answer that ended in an error does not count as answered", () => {
    const failed: TranscriptMessage = { role: "assistant", content: [], stopReason: "error" };
    const turn = [user(text("hi")), answer()];
    expect(shown([user(small), answer(), ...turn, ...turn, user(text("again")), failed])[0]).toBe(1);
  });
});

describe("too many", () => {
  const picture = (side: number, length = 64) => image(pngOf(side, 1, length));
  const widths = (done: StepResult) =>
    blocksOf(done).map((block) =>
      block.type === "image" ? readImageHeader(Buffer.from(block.data, "base64"))?.width : block.text,
    );
  const gone = (size: string) => `[image: image/png, ${size}: omitted, because there are too many]`;

  test("beyond the count the oldest become texts, and are not loaded", () => {
    const messages = [user(blobOf("aa"), picture(1)), answer(), user(picture(2), picture(3))];
    const done = atOnce(messages, policyOf({ maxCount: 2 }), unaskedPort);
    expect(widths(done)).toEqual([gone("120 KB"), gone("64 bytes"), 2, 3]);
    expect(atOnce([user(picture(1))], policyOf({ maxCount: 0 })).changes).toHaveLength(1);
  });

  test("beyond the total size the oldest become texts, even if an older one would fit", () => {
    const pictures = [picture(1, 64), picture(2, 6000), picture(3, 6000)];
    const messages = [user(...pictures)];
    expect(widths(atOnce(messages, policyOf({ maxTotalBytes: 10_000 })))).toEqual([
      gone("64 bytes"),
      gone("6 KB"),
      3,
    ]);
    expect(atOnce(messages, policyOf({ maxTotalBytes: 12_064 })).messages).toBe(messages);
    const blobFirst = [user(blobOf("aa"), ...pictures)];
    expect(widths(atOnce(blobFirst, policyOf({ maxTotalBytes: 10_000 }), unaskedPort))[0]).toBe(
      gone("120 KB"),
    );
  });

  test("content that is not an image takes no place", () => {
    const messages = [user(picture(1)), user(image(Buffer.from("no image")))];
    expect(widths(atOnce(messages, policyOf({ maxCount: 1 })))[0]).toBe(1);
  });
});

describe("images of tool results", () => {
  const messages: TranscriptMessage[] = [
    user(text("Look at both")),
    { role: "assistant", content: [] },
    result("t1", text("first"), small, small),
    result("t2", text("none")),
    { ...result("t3", small), toolName: "ca\nmera" },
    answer(),
  ];
  const below = text("[image: shown below]");

  test("if not allowed inside, they follow the whole group, each with its tool's name", () => {
    const done = atOnce(messages, policyOf({}, "behind"));
    expect(done.messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "toolResult",
      "toolResult",
      "user",
      "assistant",
    ]);
    expect(done.messages[2]?.content).toEqual([text("first"), below, below]);
    expect(done.messages[3]).toBe(messages[3]);
    expect(done.messages[4]?.content).toEqual([below]);
    expect(done.messages[5]?.content).toEqual([
      text("[images of the tool result look (t1)]"),
      small,
      small,
      text("[images of the tool result ca\\u000amera (t3)]"),
      small,
    ]);
    expect(isSaid(done.messages[5] as TranscriptMessage)).toBe(false);
    expect(kindsOf(done)).toEqual(["image_moved", "image_moved"]);
  });

  test("the same for an error result, everywhere, and at the end of the transcript", () => {
    const failed = { ...result("t1", small), isError: true };
    const done = atOnce([messages[0] as never, failed]);
    expect(done.messages.map(({ role }) => role)).toEqual(["user", "toolResult", "user"]);
    const fine = [messages[0] as never, { ...failed, isError: false }];
    expect(atOnce(fine).messages).toBe(fine);
  });

  test("an image that cannot be shown stays in place, and each group has its own", () => {
    const bad = image(Buffer.from("no image"));
    const done = atOnce([result("t1", bad), user(text("wait")), result("t2", small)], policyOf({}, "behind"));
    expect(done.messages.map(({ role }) => role)).toEqual(["toolResult", "user", "toolResult", "user"]);
    expect(done.messages[0]?.content).toEqual([text("[image: image/png, 8 bytes: could not be read]")]);
  });

  test("the message with them is not a separate turn", () => {
    const step = (id: string) => [{ role: "assistant", content: [] } as TranscriptMessage, result(id, small)];
    const long = [user(text("go")), ...step("a"), ...step("b"), ...step("c"), ...step("d"), answer()];
    const once = atOnce(long, policyOf({}, "behind"));
    expect(blocksOf(once).filter(({ type }) => type === "image")).toHaveLength(4);
    expect(atOnce(once.messages, policyOf({}, "behind")).messages).toBe(once.messages);
    const copied = JSON.parse(JSON.stringify(once.messages)) as TranscriptMessage[];
    expect(atOnce(copied, policyOf({}, "behind")).messages).toBe(copied);
  });
});

describe("any transcript", () => {
  const blobs = new Map<string, Buffer>([
    ["good", pngOf(50, 60)],
    ["large", pngOf(5000, 60)],
    ["junk", Buffer.from("junk")],
  ]);
  const port: ImagePort = {
    blob: async (sha256) => blobs.get(sha256) ?? null,
    shrink: async (_, { maxSide }) =>
      maxSide < 200 ? null : { bytes: jpegOf(maxSide, 9), mimeType: "image/jpeg" },
  };
  const side = fc.constantFrom(1, 100, 300, 2000);
  const bytes = fc.oneof(
    fc.tuple(side, side).map(([width, height]) => pngOf(width, height)),
    fc.tuple(side, fc.constantFrom(64, 3000, 20_000)).map(([width, length]) => pngOf(width, 5, length)),
    fc.tuple(side, side).map(([width, height]) => jpegOf(width, height)),
    fc.uint8Array({ maxLength: 40 }).map((each) => Buffer.from(each)),
  );
  const block: fc.Arbitrary<Block> = fc.oneof(
    { weight: 2, arbitrary: fc.string().map(text) },
    {
      weight: 4,
      arbitrary: fc
        .tuple(bytes, fc.constantFrom("image/png", "image/jpeg", "nonsense"))
        .map(([each, type]) => image(each, type)),
    },
    {
      weight: 2,
      arbitrary: fc.constantFrom("good", "large", "junk", "gone").map((sha256) => blobOf(sha256)),
    },
    { weight: 1, arbitrary: fc.string({ unit: "binary" }).map((data) => ({ ...small, data })) },
  );
  const message: fc.Arbitrary<TranscriptMessage> = fc.oneof(
    { weight: 3, arbitrary: fc.array(block, { maxLength: 4 }).map((blocks) => user(...blocks)) },
    { weight: 1, arbitrary: fc.string().map((content): TranscriptMessage => ({ role: "user", content })) },
    {
      weight: 3,
      arbitrary: fc.constantFrom(answer(), { ...answer(), stopReason: "error" } as TranscriptMessage),
    },
    {
      weight: 4,
      arbitrary: fc
        .tuple(fc.array(block, { maxLength: 3 }), fc.boolean())
        .map(([blocks, isError]): TranscriptMessage => ({ ...result("t", ...blocks), isError })),
    },
  );
  const policy = fc
    .record({
      maxSide: fc.constantFrom(100, 400, 1200),
      maxBytes: fc.constantFrom(60, 5000, 50_000),
      maxCount: fc.constantFrom(0, 1, 3, 100),
      maxTotalBytes: fc.constantFrom(100, 10_000, 1_000_000),
      behind: fc.boolean(),
      sees: fc.boolean(),
    })
    .map(({ behind, sees, ...images }) => policyOf(sees ? images : null, behind ? "behind" : "inside"));
  const saidIn = (messages: readonly TranscriptMessage[]) =>
    messages.flatMap((each) =>
      each.role !== "user" || !isSaid(each)
        ? []
        : typeof each.content === "string"
          ? [each.content]
          : each.content.flatMap((one) => (one.type === "text" && one.skein === undefined ? [one.text] : [])),
    );

  test("[TR16] a second pass changes nothing, and every remaining image may be sent", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(message, { maxLength: 25 }), policy, async (messages, rules) => {
        const before = JSON.stringify(messages);
        const once = await later(messages, port, rules);
        expect(JSON.stringify(messages)).toBe(before);
        const twice = await later(once.messages, port, rules);
        expect(twice.messages).toBe(once.messages);
        expect(twice.changes).toEqual([]);
        expect(once.changes.length > 0).toBe(once.messages !== messages);
        const left = blocksOf(once).filter((each) => each.type === "image");
        const sizes = left.map(({ data }) => Buffer.from(data, "base64"));
        for (const [index, each] of sizes.entries()) {
          const header = readImageHeader(each);
          expect(header?.mimeType).toBe(left[index]?.mimeType);
          expect(Math.max(header?.width ?? 0, header?.height ?? 0)).toBeLessThanOrEqual(
            rules.images?.maxSide ?? 0,
          );
          expect(each.length).toBeLessThanOrEqual(rules.images?.maxBytes ?? 0);
        }
        expect(left.length).toBeLessThanOrEqual(rules.images?.maxCount ?? 0);
        const total = sizes.reduce((sum, each) => sum + each.length, 0);
        expect(total).toBeLessThanOrEqual(rules.images?.maxTotalBytes ?? 0);
        expect(blocksOf(once).some((each) => each.type === "text" && each.skein?.blob?.was === "image")).toBe(
          false,
        );
        for (const each of once.messages)
          if (each.role === "toolResult" && (each.isError === true || rules.toolResultImages === "behind"))
            expect(each.content.every(({ type }) => type === "text")).toBe(true);
        const texts = saidIn(once.messages);
        expect(saidIn(messages).every((each) => texts.includes(each))).toBe(true);
      }),
    );
  });
});
