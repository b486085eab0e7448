import type { ContextMessage } from "../../src/index.ts";
import type { AssistantMessage, ToolResultMessage } from "../support/text.ts";
import { png } from "./conversation.ts";
import type { Chance } from "./random.ts";

/**
 * The effects of interruptions, other programs and bad disks on a transcript. The tests also apply each kind on its
 * own.
 */

type Damage = (messages: ContextMessage[], chance: Chance) => void;

const deep = (levels: number): Record<string, unknown> => {
  let value: Record<string, unknown> = {};
  for (let level = 0; level < levels; level++) value = { in: value };
  return value;
};

const badIds: readonly [string, ...string[]] = [
  "half\ud83d",
  "",
  "a b/c:d",
  "ü".repeat(50),
  "x".repeat(200),
  "call_0",
  "123456789",
  "|",
  "call|fc",
];
const badSignatures: readonly [string, ...string[]] = [
  "",
  "not base64!",
  '{"id":"rs_1"}',
  "{torn",
  "reasoning_content",
];

function change(
  messages: ContextMessage[],
  chance: Chance,
  role: string,
  edit: (message: never) => ContextMessage,
): void {
  const places = messages.flatMap((message, index) => (message.role === role ? [index] : []));
  if (places.length === 0) return;
  const at = places[chance.below(places.length)] as number;
  messages[at] = edit(structuredClone(messages[at]) as never);
}

function editCalls(edit: (call: Record<string, unknown>, chance: Chance) => void): Damage {
  return (messages, chance) =>
    change(messages, chance, "assistant", (message: AssistantMessage) => {
      for (const block of message.content)
        if (block?.type === "toolCall") edit(block as unknown as Record<string, unknown>, chance);
      return message;
    });
}

export const damages: Readonly<Record<string, Damage>> = {
  dropped: (messages, chance) => void messages.splice(chance.below(messages.length), 1),
  doubled: (messages, chance) => {
    const at = chance.below(messages.length);
    const message = messages[at];
    if (message !== undefined) messages.splice(at, 0, structuredClone(message));
  },
  reordered: (messages, chance) => {
    const [one, other] = [chance.below(messages.length), chance.below(messages.length)];
    const [first, second] = [messages[one], messages[other]];
    if (first === undefined || second === undefined) return;
    messages[one] = second;
    messages[other] = first;
  },
  "cut at the end": (messages, chance) => void messages.splice(1 + chance.below(messages.length)),
  "cut at the beginning": (messages, chance) => void messages.splice(0, chance.below(messages.length)),
  compacted: (messages, chance) => {
    const gone = chance.below(messages.length);
    messages.splice(0, gone, { role: "compactionSummary", summary: "They talked.", timestamp: 1 });
  },
  "came back from a branch": (messages, chance) => {
    const summary = { role: "branchSummary" as const, summary: "A side track.", timestamp: 1 };
    messages.splice(chance.below(messages.length + 1), 0, summary);
  },
  "foreign ids": editCalls((call, chance) => {
    call.id = chance.pick(badIds);
  }),
  "ids of results": (messages, chance) =>
    change(messages, chance, "toolResult", (message: ToolResultMessage) => ({
      ...message,
      toolCallId: chance.pick(badIds),
    })),
  "bad names": editCalls((call, chance) => {
    call.name = chance.pick([
      "",
      "has space",
      "x".repeat(80),
      "ünï",
      "gone_tool",
      "constructor",
      "1read",
      "-read",
    ]);
  }),
  "names of results": (messages, chance) =>
    change(messages, chance, "toolResult", (message: ToolResultMessage) => ({
      ...message,
      toolName: chance.pick(["", "other"]),
    })),
  "bad arguments": editCalls((call, chance) => {
    call.arguments = chance.pick<unknown>([undefined, null, "{}", [1], 7, deep(300), { half: "\ud800" }]);
  }),
  "empty blocks": (messages, chance) =>
    change(
      messages,
      chance,
      chance.pick(["user", "assistant", "toolResult"]),
      (message: ToolResultMessage) => ({
        ...message,
        content: chance.pick<never>([
          [],
          [{ type: "text", text: "" }],
          [{ type: "text", text: " \n\t" }],
        ] as never),
      }),
    ),
  "blank among others": (messages, chance) =>
    change(messages, chance, "assistant", (message: AssistantMessage) => ({
      ...message,
      content: [{ type: "text", text: "" }, ...message.content, { type: "text", text: "\n" }],
    })),
  "unknown blocks": (messages, chance) =>
    change(messages, chance, chance.pick(["assistant", "toolResult"]), (message: AssistantMessage) => ({
      ...message,
      content: [...message.content, { type: "hologram", data: 1 } as never, null as never],
    })),
  "unknown role": (messages, chance) =>
    void messages.splice(chance.below(messages.length + 1), 0, { role: "narrator", content: "x" } as never),
  aborted: (messages, chance) =>
    change(messages, chance, "assistant", (message: AssistantMessage) => ({
      ...message,
      stopReason: "aborted",
    })),
  failed: (messages, chance) =>
    change(messages, chance, "assistant", (message: AssistantMessage) => ({
      ...message,
      stopReason: "error",
      errorMessage: "529",
    })),
  "stream cut off": (messages, chance) =>
    change(messages, chance, "assistant", (message: AssistantMessage) => ({
      ...message,
      stopReason: "aborted",
      content: message.content
        .slice(0, 1 + chance.below(3))
        .map((block) =>
          block?.type === "thinking" ? { type: "thinking" as const, thinking: block.thinking } : block,
        ),
    })),
  "bad signatures": (messages, chance) =>
    change(messages, chance, "assistant", (message: AssistantMessage) => ({
      ...message,
      content: message.content.map((block) =>
        block?.type === "thinking"
          ? { ...block, thinkingSignature: chance.pick(badSignatures) }
          : block?.type === "toolCall"
            ? { ...block, thoughtSignature: chance.pick(badSignatures) }
            : { ...block, textSignature: chance.pick(badSignatures) },
      ),
    })),
  "redacted thinking": (messages, chance) =>
    change(messages, chance, "assistant", (message: AssistantMessage) => ({
      ...message,
      content: [{ type: "thinking", thinking: "", redacted: true }, ...message.content],
    })),
  "another model": (messages, chance) =>
    change(messages, chance, "assistant", (message: AssistantMessage) => ({ ...message, model: "another" })),
  "only thinking": (messages, chance) =>
    change(messages, chance, "assistant", (message: AssistantMessage) => ({
      ...message,
      content: message.content.filter((block) => block?.type === "thinking"),
    })),
  "half characters": (messages, chance) =>
    change(messages, chance, chance.pick(["assistant", "toolResult"]), (message: AssistantMessage) => ({
      ...message,
      content: [...message.content, { type: "text", text: "half \ud83d" }],
    })),
  "bad images": (messages, chance) =>
    change(messages, chance, chance.pick(["user", "toolResult"]), (message: ToolResultMessage) => ({
      ...message,
      content: [
        ...(typeof message.content === "string"
          ? [{ type: "text" as const, text: message.content as string }]
          : message.content),
        chance.pick([
          { type: "image" as const, data: "", mimeType: "image/png" },
          { type: "image" as const, data: "!!!!", mimeType: "image/png" },
          { type: "image" as const, data: png, mimeType: "image/jpeg" },
          { type: "image" as const, data: png.slice(0, 24), mimeType: "image/png" },
          {
            type: "image" as const,
            data: Buffer.from("%PDF-1.4").toString("base64"),
            mimeType: "application/pdf",
          },
        ]),
      ],
    })),
  "many images": (messages, chance) =>
    change(messages, chance, "user", (message: ToolResultMessage) => ({
      ...message,
      content: [
        ...(typeof message.content === "string"
          ? [{ type: "text" as const, text: message.content as string }]
          : message.content),
        ...Array.from({ length: 12 }, () => ({ type: "image" as const, data: png, mimeType: "image/png" })),
      ],
    })),
  "long results": (messages, chance) =>
    change(messages, chance, "toolResult", (message: ToolResultMessage) => ({
      ...message,
      content: [{ type: "text", text: "long ".repeat(chance.between(800, 6000)) }, ...message.content],
    })),
  blobs: (messages, chance) =>
    change(
      messages,
      chance,
      chance.pick(["user", "toolResult", "assistant"]),
      (message: ToolResultMessage) => ({
        ...message,
        content: [
          {
            type: "text",
            text: chance.pick(["[image, kept elsewhere]", " "]),
            skein: {
              blob: {
                sha256: chance.pick(["there", "gone"]),
                bytes: 70,
                mimeType: "image/png",
                was: chance.pick(["image", "text"]),
              },
            },
          },
          ...(typeof message.content === "string"
            ? [{ type: "text" as const, text: message.content as string }]
            : message.content),
        ],
      }),
    ),
  "what others said of it": (messages, chance) =>
    change(messages, chance, "assistant", (message: AssistantMessage) => ({
      ...message,
      model: "another",
      skein: { providerMetadata: { google: { thoughtSignature: "x" }, openai: { itemId: "msg_1" } } },
      content: message.content.map((block) => ({
        ...block,
        skein: {
          providerMetadata: {
            google: { thoughtSignature: "not ours" },
            anthropic: { signature: "not ours" },
            openai: { itemId: "rs_of_nobody", reasoningEncryptedContent: "x" },
          },
        },
      })) as AssistantMessage["content"],
    })),
  "stray result": (messages, chance) =>
    void messages.splice(chance.below(messages.length + 1), 0, {
      role: "toolResult",
      toolCallId: chance.pick(["call_0", "nobody"]),
      toolName: "read",
      content: [{ type: "text", text: "stray" }],
      isError: false,
    }),
  "calls of nobody": (messages, chance) =>
    void messages.splice(chance.below(messages.length + 1), 0, {
      role: "assistant",
      content: [{ type: "toolCall", id: chance.pick(["call_0", "lost"]), name: "read", arguments: {} }],
    }),
};

export const damageNames = Object.keys(damages) as [string, ...string[]];
