import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AgentToAgent } from "../src/access/visibility/access-policy.ts";
import type { ContextMessage } from "../src/index.ts";
import type { WireFormat } from "../src/testing/twins/contract.ts";
import { StepCounter } from "./support/step-counter.ts";

/**
 * Operations that scale linearly with any input. Growth is measured in steps, never in time. Everything is imported
 * after the counter has started, because otherwise its steps could not be counted.
 */

let counter: StepCounter;
beforeAll(async () => {
  counter = await StepCounter.start();
});
afterAll(() => counter.stop());

/** The ratio of the larger input size to the smaller one. */
const larger = 8;
/** A quadratic operation would take 64 times as many steps. The margin allows for initialization in the first call. */
const mostTimes = 10;

type Work = () => unknown;

/** Checks that eight times the input takes about eight times as many steps. */
async function expectLinear(workOf: (size: number) => Work | Promise<Work>, size: number): Promise<void> {
  const [small, large] = [await workOf(size), await workOf(larger * size)];
  // Initialization in the first call is counted for neither size.
  await small();
  const [few, many] = [await counter.count(small), await counter.count(large)];
  expect(few).toBeGreaterThan(0);
  expect(many / few).toBeLessThan(mostTimes);
}

/**
 * Steps inside a regular expression cannot be counted, but an expression that backtracks over this much text would not
 * return.
 */
const longText = 2_000_000;

test("the steps of a context grow linearly with the branch", async () => {
  const { parseSession } = await import("../src/core/parse-session.ts");
  const { SessionTree } = await import("../src/core/tree.ts");
  const { header, userLine } = await import("./support/session-text.ts");
  await expectLinear((size) => {
    const lines = Array.from({ length: size }, (_, at) => userLine(`e${at}`, at === 0 ? null : `e${at - 1}`));
    const tree = SessionTree.from(
      parseSession([header, ...lines].map((each) => JSON.stringify(each)).join("\n")),
    );
    return () => tree.context();
  }, 1000);
});

test("[ENT14] a name of many blanks is sealed in linear time", async () => {
  const { sealEntry } = await import("../src/core/seal.ts");
  const place = { id: "e1", parentId: "e0", time: 0 };
  const sealed = (blanks: number) => () =>
    sealEntry({ type: "session_info", name: `a${" ".repeat(blanks)}b` }, place);
  await expectLinear(sealed, 1000);
  expect(JSON.stringify(sealed(longText)())).toContain('"name":"a');
});

describe("an allow list", () => {
  const load = async () => {
    const a2a = await import("../src/access/visibility/access-policy.ts");
    const policy = (...entries: string[]): AgentToAgent => ({
      enabled: true,
      allow: a2a.readAllowList(entries),
    });
    return { ...a2a, policy };
  };
  const long = "a".repeat(64);

  test.each(["*a", "a*", "**", "*", "a*a*", "*aaaaaaa"])("matching grows with the list: %s", async (unit) => {
    const { checkAgentPair, policy } = await load();
    const side = `${unit.repeat(64).slice(0, 63)}b`;
    await expectLinear((size) => {
      const pairs = policy(...Array.from({ length: size }, () => `${side} -> ${side}`));
      const bare = policy(...Array.from({ length: size }, () => side));
      const other = `${long.slice(1)}c`;
      return () => [checkAgentPair(pairs, long, other), checkAgentPair(bare, long, other)];
    }, 20);
  });

  test.each(["*a", "->", "- >", " ", "a", "a->"])("parsing an entry grows with it: %j", async (unit) => {
    const { checkAgentPair, policy, readAllowList } = await load();
    const read = (size: number) => readAllowList([unit.repeat(size), `x${unit.repeat(size)}y`]);
    await expectLinear((size) => () => read(size), 1000);
    for (const entry of read(longText))
      if (entry.is === "mistake") expect(entry.problem.length).toBeLessThan(1000);
    expect(checkAgentPair(policy("*"), long, "b".repeat(longText)).allowed).toBe(false);
  });
});

describe("redaction", () => {
  /** Text that could make a rule scan everything from each position. */
  const hostile: Readonly<Record<string, string>> = {
    "prefixes in a row": "sk-",
    "prefixes of JWTs": "eyJ.",
    "one long word": "a",
    "names without values": "password=",
    "names with refused values": "token=token:",
    "quotes that never end": `password="'\``,
    "keys that never end": "-----BEGIN RSA PRIVATE KEY-----",
    "addresses without a host": "a://b:",
    "addresses in a row": "a://b:c@",
    flags: "--token ",
    hyphens: "-",
    colons: "1234567890:",
    equals: "=",
    backslashes: 'password=\\"\\',
    spaces: "password          ",
    dots: "M.",
    bearer: "Bearer ",
    cookies: "Cookie: a=",
    webhooks: "hooks.slack.com/services/",
    emoji: "😀",
  };

  /** Rules give up on values of some ten thousand characters. Both sizes are well above that limit. */
  const beyondEveryBound = 40_000;

  test.each(Object.entries(hostile))("the steps grow linearly: %s", async (_, unit) => {
    const { createRedactor } = await import("../src/access/redaction/redactor.ts");
    const redactor = createRedactor({ secrets: ["aaaaaaaaaaaaaaaaab"] });
    const textOf = (length: number) => unit.repeat(Math.ceil(length / unit.length));
    await expectLinear((size) => {
      const text = textOf(size);
      return () => redactor.redact(text);
    }, beyondEveryBound);
  });
});

describe("the estimate of tokens", () => {
  test.each([
    ["one letter", "a"],
    ["one capital", "A"],
    ["one digit", "7"],
    ["one mark", "="],
    ["alternating marks", "(="],
    ["spaces", " "],
    ["lines", "\n"],
    ["alternating letters and digits", "a1"],
    ["accents", "é"],
    ["base64", "aB3+"],
    ["half pairs", "\udc00"],
  ])("%s, repeated: in linear time", async (_, pattern) => {
    const { textTokens } = await import("../src/transcript/text-tokens.ts");
    await expectLinear((size) => {
      const text = pattern.repeat(size);
      return () => textTokens(text);
    }, 10_000);
  });
});

describe("the transcript", () => {
  /** Blocks of a hundred messages, each damaged, so that ten times as many messages have ten times as much damage. */
  const damaged = async (blocks: number): Promise<readonly ContextMessage[]> => {
    const [{ Conversation }, { damageNames, damages }, { Chance }, { anySigner }] = await Promise.all([
      import("./transcript/conversation.ts"),
      import("./transcript/damage.ts"),
      import("./transcript/random.ts"),
      import("./transcript/signer.ts"),
    ]);
    const chance = new Chance(7);
    return Array.from({ length: blocks }, () => {
      const messages = new Conversation(chance, anySigner).turns(25).messages.slice(0, 100);
      for (let count = 0; count < 10; count++) damages[chance.pick(damageNames)]?.(messages, chance);
      return messages;
    }).flat();
  };
  const many = (count: number, make: (at: number) => ContextMessage) =>
    Array.from({ length: count }, (_, at) => make(at));
  const call = { type: "toolCall", id: "call_0", name: "read", arguments: {} } as const;
  /**
   * Input that could make a matcher scan everything each time: the same ID for all calls and the same speaker for all
   * turns.
   */
  const hostile: Readonly<
    Record<string, (count: number) => readonly ContextMessage[] | Promise<readonly ContextMessage[]>>
  > = {
    "one ID for all calls": (count) =>
      many(count, (at) =>
        at % 2 === 0
          ? { role: "assistant", content: [call] }
          : {
              role: "toolResult",
              toolCallId: "call_0",
              toolName: "read",
              content: [{ type: "text", text: "x" }],
            },
      ),
    "all calls in one message": (count) => [
      { role: "assistant", content: Array.from({ length: count }, () => call) },
    ],
    "only users": (count) => many(count, () => ({ role: "user", content: "x" })),
    "only assistants": (count) =>
      many(count, () => ({ role: "assistant", content: [{ type: "text", text: "x" }] })),
    "only orphans": (count) =>
      many(count, () => ({ role: "toolResult", toolCallId: "a", toolName: "b", content: [] })),
    "only hooks": (count) =>
      many(count, () => ({ role: "custom", customType: "x", content: "y", timestamp: 1 })),
    "a line of Skein after unusual line breaks": (count) => [
      { role: "user", content: `${"\r\u2028".repeat(count * 5)}x [Inter-session message]` },
      { role: "user", content: `${"\r [Inter-session message]".repeat(count)}` },
    ],
    damaged: (count) => damaged(count / 100),
  };

  test.each(Object.entries(hostile))("the steps grow linearly with the messages: %s", async (_, make) => {
    const { prepareTranscript } = await import("../src/transcript/steps/prepare-transcript.ts");
    const { resolveTranscriptPolicy } = await import("../src/transcript/policy.ts");
    const { speakers } = await import("./transcript/conversation.ts");
    const policies = speakers.map((speaker) => resolveTranscriptPolicy(speaker));
    await expectLinear(async (size) => {
      const messages = await make(size);
      return async () => {
        for (const policy of policies) await prepareTranscript(messages, policy);
      };
    }, 400);
  });

  test("the steps for images grow linearly, and are few for messages without images", async () => {
    const { pngOf } = await import("./support/images.ts");
    const { prepareTranscript } = await import("../src/transcript/steps/prepare-transcript.ts");
    const { resolveTranscriptPolicy } = await import("../src/transcript/policy.ts");
    const limits = { maxSide: 1200, maxBytes: 10_000, maxCount: 100, maxTotalBytes: 1_000_000 };
    const policy = resolveTranscriptPolicy({
      provider: "anthropic",
      model: "m",
      overrides: { images: limits },
    });
    const image = { type: "image", data: pngOf(20, 10).toString("base64"), mimeType: "image/png" } as const;
    const text = { type: "text", text: "hi" } as const;
    const chat = (size: number, block: typeof image | typeof text) => {
      const messages = many(size, (at) =>
        at % 2 === 0 ? { role: "user", content: [text, block] } : { role: "assistant", content: [text] },
      );
      return () => prepareTranscript(messages, policy);
    };
    await expectLinear((size) => chat(size, image), 500);
    const [without, withImages] = [
      await counter.count(chat(4000, text)),
      await counter.count(chat(4000, image)),
    ];
    expect(without).toBeLessThan(withImages);
  });
});

describe("paths in a prompt", () => {
  test.each(['"', "“", "\\", "a.png", ".png", "'a", "(", "照.png", '"a.png'])(
    "a text of %j is parsed in linear time",
    async (pattern) => {
      const { typedPaths } = await import("../src/sessions/find-image-paths.ts");
      const read = (length: number) => {
        const text = pattern.repeat(length / pattern.length);
        return () => {
          let count = 0;
          for (const _ of typedPaths(text, "/w", "/h")) if (++count === 1000) break;
        };
      };
      await expectLinear(read, 500);
      read(1_000_000)();
    },
  );
});

describe("the rehearsal model", () => {
  /** Requests of about this many characters that would slow down a careless pattern. */
  const hostile: readonly ((size: number) => string)[] = [
    (size) => "spawn ".repeat(size / 6),
    (size) => `spawn three helpers to ${" and wait".repeat(size / 9)}`,
    (size) => `ask support ${" ".repeat(size)}and wai`,
    (size) => `tell ${"a".repeat(size)}`,
    (size) => `告诉${"，".repeat(size)}`,
    (size) => `use the tool weather with ${"a=b ".repeat(size / 4)}!`,
    (size) => `use the tool weather with {${'"a":'.repeat(size / 4)}`,
    (size) => `think about ${"(a+)+$".repeat(size / 6)}`,
    (size) => "\n".repeat(size),
    (size) => `x${"\n".repeat(size)}x`,
    (size) => `[Inter-session message] sourceSession="${'\\"'.repeat(size / 2)}\nhi`,
    (size) => `[Inter-session message]${" sourceSession".repeat(size / 14)}\nhi`,
    (size) =>
      `<conversation>\n${"[User]: hi\n".repeat(size / 11)}\n</conversation>\nUse exactly these headings\n## Goal\n`,
    (size) =>
      `<conversation>\n[User]: hi${"\n".repeat(size)}\n</conversation>\nUse exactly these headings\n## Goal\n`,
  ];

  test.each(hostile)("the steps of an answer grow linearly with the request: %#", async (make) => {
    const { asked, told } = await import("./support/rehearsal.ts");
    const { rehearsalModel } = await import("../src/agents/rehearsal/rehearsal-model.ts");
    const model = rehearsalModel();
    const answer = (size: number) => {
      const request = asked(make(size));
      return () => told(model, request);
    };
    await expectLinear(answer, 5000);
    await answer(400_000)();
  });
});

describe("twins of providers", () => {
  test.each(["anthropic-messages", "google-generative-ai"] as const)(
    "%s: the steps of a check grow linearly with the request",
    async (api) => {
      const { checkRequest } = await import("../src/testing/server/check-request.ts");
      const { generateRequest, messagesRequest } = await import("./support/twins.ts");
      const isAnthropic = api === "anthropic-messages";
      const request = isAnthropic ? messagesRequest() : generateRequest();
      await expectLinear((size) => {
        const list = Array.from({ length: size + 1 }, (_, at) => ({
          role: at % 2 === 0 ? "user" : isAnthropic ? "assistant" : "model",
          ...(isAnthropic ? { content: `turn ${at}` } : { parts: [{ text: `turn ${at}` }] }),
        }));
        const given = { ...request, body: { ...(request.body as object), messages: list, contents: list } };
        return () => expect(checkRequest(api, given, { contextWindow: 10_000_000 })).toBeNull();
      }, 1000);
    },
  );

  const idsOf = (count: number) => Array.from({ length: count }, (_, at) => String(at).padStart(9, "0"));

  /** A long conversation with calls, in each style. */
  function longBody(isResponses: boolean, turns: number): unknown {
    const call = (id: string) => ({ id, type: "function", function: { name: "look", arguments: '{"a":1}' } });
    if (isResponses) {
      const input = idsOf(turns).flatMap((id) => [
        { role: "user", content: "Plan" },
        { type: "function_call", call_id: id, name: "look", arguments: "{}" },
        { type: "function_call_output", call_id: id, output: "found" },
      ]);
      return { model: "m", input };
    }
    const messages = idsOf(turns).flatMap((id) => [
      { role: "user", content: "Plan" },
      { role: "assistant", content: "", tool_calls: [call(id)] },
      { role: "tool", tool_call_id: id, content: "found" },
      { role: "assistant", content: "Found." },
    ]);
    return { model: "m", messages: [...messages, { role: "user", content: "And?" }] };
  }

  /** One turn with a very large number of calls. */
  function wideBody(isResponses: boolean, width: number): unknown {
    const all = idsOf(width);
    if (isResponses) {
      const calls = all.map((id) => ({ type: "function_call", call_id: id, name: "look", arguments: "{}" }));
      const results = all.map((id) => ({ type: "function_call_output", call_id: id, output: "" }));
      return { model: "m", input: [...calls, ...results] };
    }
    const calls = all.map((id) => ({ id, type: "function", function: { name: "look", arguments: "{}" } }));
    const results = all.map((id) => ({ role: "tool", tool_call_id: id, content: "" }));
    return {
      model: "m",
      messages: [{ role: "user", content: "Plan" }, { role: "assistant", tool_calls: calls }, ...results],
    };
  }

  const formats: Readonly<Record<string, readonly [load: () => Promise<WireFormat>, path: string]>> = {
    "OpenAI Chat Completions": [
      async () => (await import("../src/testing/server/check-request.ts")).wireFormats["openai-completions"],
      "/v1/chat/completions",
    ],
    "OpenAI Responses": [
      async () => (await import("../src/testing/server/check-request.ts")).wireFormats["openai-responses"],
      "/v1/responses",
    ],
    Mistral: [
      async () =>
        (await import("../src/testing/server/check-request.ts")).wireFormats["mistral-conversations"],
      "/v1/chat/completions",
    ],
  };

  test.each(Object.entries(formats))(
    "%s: the steps grow linearly with the body",
    async (name, [load, path]) => {
      const format = await load();
      const { posted } = await import("./support/twin-fetch.ts");
      for (const bodyOf of [longBody, wideBody]) {
        await expectLinear((size) => {
          const request = posted(path, bodyOf(name === "OpenAI Responses", size));
          return () => expect(format.check(request, { contextWindow: 1e9 })).toBeNull();
        }, 500);
      }
    },
  );
});
