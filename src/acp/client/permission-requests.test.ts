import type {
  CreateTerminalRequest,
  PermissionOption,
  RequestPermissionRequest,
} from "@agentclientprotocol/sdk/unstable";
import { describe, expect, test } from "vitest";
import type { ToolCallBlock } from "../../core/messages.ts";
import type { PermissionContext } from "./permission-requests.ts";
import { PermissionRequests, permissionOutcome } from "./permission-requests.ts";

const option = (kind: PermissionOption["kind"]): PermissionOption => ({ optionId: kind, name: kind, kind });
const all = (["reject_always", "allow_always", "reject_once", "allow_once"] as const).map(option);

type Answer = { readonly approved: boolean; readonly note: string };
const yes: Answer = { approved: true, note: "It was approved." };
const no: Answer = { approved: false, note: "A person rejected it." };

function opened(
  policy: PermissionContext["policy"],
  answers: readonly (Answer | Error | Promise<Answer>)[] = [],
) {
  const [asked, failures, told]: [ToolCallBlock[], unknown[], string[]] = [[], [], []];
  const notices: string[] = [];
  const stop = new AbortController();
  const permissions = new PermissionRequests({
    id: "d1",
    policy,
    cwd: "/place",
    signal: stop.signal,
    approve: async (call) => {
      const answer = answers[asked.push(call) - 1] ?? no;
      if (answer instanceof Error) throw answer;
      return answer;
    },
    findCall: (id) =>
      id === "known" ? { type: "toolCall", id, name: "read", arguments: { path: "a" } } : null,
    recordCall: ({ toolCallId }) => void told.push(toolCallId),
    addNotice: (title) => void notices.push(title),
    onFailure: (error) => void failures.push(error),
  });
  const ask = (toolCall: Partial<RequestPermissionRequest["toolCall"]> = {}, options = all) =>
    permissions.decideCall({ sessionId: "s", toolCall: { toolCallId: "c1", ...toolCall }, options });
  return { permissions, ask, asked, failures, told, notices, stop };
}

const chosen = (optionId: string) => ({ outcome: "selected", optionId });
const cancelled = { outcome: "cancelled" };

describe("choosing from the options that an agent offers", () => {
  test.each([
    ["granted", all, chosen("allow_once")],
    ["granted", [option("reject_once"), option("allow_always")], chosen("allow_always")],
    ["granted", [option("reject_once"), option("reject_always")], cancelled],
    ["refused", all, chosen("reject_once")],
    ["refused", [option("allow_once"), option("reject_always")], cancelled],
    ["refused", [option("allow_once")], cancelled],
    ["cancelled", all, cancelled],
    ["granted", [], cancelled],
  ] as const)("[ARU5] %s, of %j", (verdict, options, expected) => {
    expect(permissionOutcome(verdict, options)).toEqual(expected);
  });
});

describe("permission requests", () => {
  test.each([
    ["allow", [], chosen("allow_once"), null],
    ["deny", [], chosen("reject_once"), 'Permission for "Delete it" was denied: by acp.permissions: deny.'],
    ["ask", [yes], chosen("allow_once"), null],
    ["ask", [no], chosen("reject_once"), 'Permission for "Delete it" was denied: a person rejected it.'],
    [
      "ask",
      [{ approved: false, note: "No one answered within 5 seconds." }],
      chosen("reject_once"),
      'Permission for "Delete it" was denied: no one answered within 5 seconds.',
    ],
  ] as const)(
    "[ARU16] the policy %s answers and records what it refused",
    async (policy, answers, outcome, why) => {
      const { permissions, ask, asked, told } = opened(policy, answers);
      expect(await ask({ title: "Delete it" })).toEqual(outcome);
      expect(permissions.refusal).toBe(why);
      expect(asked).toHaveLength(policy === "ask" ? 1 : 0);
      expect(told).toEqual(["c1"]);
    },
  );

  test.each([
    [{ title: "Two\nlines" }, '"Two lines"'],
    [{ title: " ", rawInput: { command: "rm", args: ["-r", "x"] } }, '"rm -r x"'],
    [{ rawInput: { command: ["rm", "x"] } }, '"rm x"'],
    [{ kind: "edit" }, "a call (edit)"],
    [{}, "a call (other)"],
  ] as const)("[ARU16] names what it refused of %j", async (toolCall, words) => {
    const { permissions, ask } = opened("deny");
    await ask(toolCall as Partial<RequestPermissionRequest["toolCall"]>);
    expect(permissions.refusal).toContain(`Permission for ${words} was denied`);
  });

  test.each([
    [
      "its own text",
      { title: "T", kind: "edit", rawInput: { a: 1 } },
      "edit",
      { title: "T", rawInput: { a: 1 } },
    ],
    [
      "the details known before",
      { toolCallId: "known", title: "T" },
      "read",
      { title: "T", rawInput: { path: "a" } },
    ],
    ["nothing", { title: null }, "other", {}],
  ] as const)("[ARU5] shows a person %s", async (_, toolCall, name, args) => {
    const { ask, asked } = opened("ask", [yes]);
    await ask(toolCall as Partial<RequestPermissionRequest["toolCall"]>);
    expect(asked).toMatchObject([{ name, arguments: args }]);
    expect(Object.keys(asked[0]?.arguments ?? {})).toEqual(Object.keys(args));
  });

  test("[ARU5] shows no more of a call than a person can read", async () => {
    const { ask, asked } = opened("ask", [yes]);
    await ask({ title: "t".repeat(100_000), rawInput: { text: "x".repeat(1_000_000) } });
    expect(JSON.stringify(asked).length).toBeLessThan(20_000);
  });

  test("[ARU5] asks one question at a time, each with its own ID", async () => {
    const first = Promise.withResolvers<Answer>();
    const { ask, asked } = opened("ask", [first.promise, yes, no, yes]);
    const answers = [
      ask({ title: "A" }),
      ask({ title: "A" }),
      ask({ title: "B" }),
      ask({ toolCallId: "c2" }),
    ];
    await new Promise(setImmediate);
    expect(asked).toHaveLength(1);
    first.resolve(yes);
    const kinds = ["allow_once", "allow_once", "reject_once", "allow_once"];
    expect(await Promise.all(answers)).toEqual(kinds.map(chosen));
    expect(new Set(asked.map(({ id }) => id)).size).toBe(4);
  });

  test("[ARU9] answers nothing after the turn is stopped, including pending questions", async () => {
    const { permissions, ask, asked, failures, stop } = opened("ask", [new Promise<Answer>(() => undefined)]);
    const open = [ask(), ask({ toolCallId: "c2" })];
    await new Promise(setImmediate);
    stop.abort(new Error("stopped"));
    expect(await Promise.all(open)).toEqual([cancelled, cancelled]);
    expect(await ask()).toEqual(cancelled);
    expect([asked.length, failures, permissions.refusal]).toEqual([1, [], null]);
  });

  test.each([
    ["only always", [option("allow_always"), option("reject_once")], chosen("reject_once")],
    ["only refusals", [option("reject_once")], chosen("reject_once")],
    ["nothing at all", [], cancelled],
  ] as const)("asks no one and grants nothing if the agent offers %s", async (_, options, outcome) => {
    const { ask, asked, notices } = opened("ask", [yes]);
    expect(await ask({ title: "Delete it" }, [...options])).toEqual(outcome);
    expect(asked).toEqual([]);
    expect(notices).toEqual([
      'Permission for "Delete it" was denied: the agent offers no option to allow it once.',
    ]);
    expect(await opened("allow").ask({}, [option("allow_always")])).toEqual(chosen("allow_always"));
  });

  test("[ARU30] withdraws pending questions on close, and grants nothing more", async () => {
    const answer = Promise.withResolvers<Answer>();
    const { permissions, ask, asked, failures } = opened("ask", [answer.promise]);
    const open = [ask(), ask()];
    await new Promise(setImmediate);
    const closing = permissions.close();
    expect(await Promise.all(open)).toEqual([cancelled, cancelled]);
    answer.resolve(yes);
    await closing;
    expect(await ask()).toEqual(cancelled);
    expect(await permissions.decideTerminal({ sessionId: "s", command: "ls" })).toBe("cancelled");
    expect([asked.length, failures, permissions.refusal, permissions.isClosed]).toEqual([1, [], null, true]);
  });

  test("[ARU30] reports on close that the turn cannot continue by itself", async () => {
    const answer = Promise.withResolvers<Answer>();
    const { permissions, ask } = opened("ask", [answer.promise]);
    const open = ask();
    await new Promise(setImmediate);
    const closing = permissions.close();
    const stopped = new Error("the slot is gone");
    answer.reject(stopped);
    await expect(closing).rejects.toBe(stopped);
    expect(await open).toEqual(cancelled);
  });

  test("[ARU5] ends the turn if no person can be asked", async () => {
    const problem = new Error("the store is gone");
    const { permissions, ask, failures } = opened("ask", [problem]);
    expect(await ask()).toEqual(cancelled);
    expect([failures, permissions.refusal]).toEqual([[problem], null]);
  });
});

describe("terminals", () => {
  const terminal = (command: string, ...args: string[]) => ({ sessionId: "s", command, args });

  test.each([
    ["the command itself", { command: "make test" }, terminal("make", "test"), "granted"],
    ["a list", { command: ["make", "test"] }, terminal("make", "test"), "granted"],
    ["its arguments separately", { command: "make", args: ["test"] }, terminal("make", "test"), "granted"],
    ["the input of a shell", { command: "make test" }, terminal("/bin/bash", "-lc", "make test"), "granted"],
    ["another command", { command: "make test" }, terminal("make", "install"), "refused"],
    [
      "an addition for the shell",
      { command: "make test" },
      terminal("sh", "-c", "make test; rm x"),
      "refused",
    ],
    ["no shell", { command: "make test" }, terminal("env", "-c", "make test"), "refused"],
    [
      "a list that only looks like a line",
      { command: ["echo", "; rm x"] },
      terminal("sh", "-c", "echo ; rm x"),
      "refused",
    ],
    [
      "a list that only looks like a bare line",
      { command: ["echo", "; rm x"] },
      terminal("echo ; rm x"),
      "refused",
    ],
    ["arguments that look like others", { command: ["rm", "a b"] }, terminal("rm", "a", "b"), "refused"],
    ["a line that a shell reads differently", { command: "rm 'a b'" }, terminal("rm", "'a", "b'"), "refused"],
    ["a variable, not a program", { command: "A=1 make" }, terminal("A=1", "make"), "refused"],
    ["a separate line", { command: "rm 'a b' && ls" }, terminal("rm 'a b' && ls"), "granted"],
    [
      "another folder",
      { command: "make test" },
      { ...terminal("make", "test"), cwd: "/place/sub" },
      "refused",
    ],
    [
      "the folder that it named",
      { command: "make", cwd: "/place/sub" },
      { ...terminal("make"), cwd: "/place/sub" },
      "granted",
    ],
    [
      "the session's folder",
      { command: "make test" },
      { ...terminal("make", "test"), cwd: "/place" },
      "granted",
    ],
    [
      "variables",
      { command: "make" },
      { ...terminal("make"), env: [{ name: "LD_PRELOAD", value: "x" }] },
      "refused",
    ],
    ["no command", { path: "a" }, terminal("make", "test"), "refused"],
    ["one that is not text", { command: 7 }, terminal("7"), "refused"],
  ] as const)("are granted with a call for %s", async (_, rawInput, request, verdict) => {
    const { permissions, ask } = opened("ask", [yes, no, no]);
    await ask({ rawInput });
    const asked = request as CreateTerminalRequest;
    expect(await permissions.decideTerminal(asked)).toBe(verdict);
    expect(await permissions.decideTerminal(asked)).toBe("refused");
  });

  test("show a person the folder and the variables", async () => {
    const { permissions, asked } = opened("ask", [yes]);
    const env = [{ name: "KEY", value: "secret" }];
    await permissions.decideTerminal({ ...terminal("make", "all"), cwd: "/place/sub", env });
    expect(asked[0]?.arguments).toEqual({
      command: "make",
      args: ["all"],
      cwd: "/place/sub",
      env,
    });
  });

  test("[ARU9] that were approved are not started after the turn is stopped", async () => {
    const { permissions, ask, stop } = opened("allow");
    await ask({ rawInput: { command: "make test" } });
    stop.abort();
    expect(await permissions.decideTerminal(terminal("make", "test"))).toBe("cancelled");
  });
});

const once: PermissionOption[] = [{ optionId: "yes", name: "Yes", kind: "allow_once" }];

/** Simulates a person who allows the first request and denies all others. */
function openPermissions(id = "d1") {
  const asked: ToolCallBlock[] = [];
  const permissions = new PermissionRequests({
    id,
    policy: "ask",
    cwd: "/place",
    signal: new AbortController().signal,
    approve: async (call) => {
      asked.push(call);
      return { approved: asked.length === 1, note: "" };
    },
    findCall: () => null,
    recordCall: () => undefined,
    addNotice: () => undefined,
    onFailure: (error) => {
      throw error;
    },
  });
  const grant = (rawInput: unknown) =>
    permissions.decideCall({ sessionId: "s", toolCall: { toolCallId: "c", rawInput }, options: once });
  const terminal = (request: Omit<CreateTerminalRequest, "sessionId">) =>
    permissions.decideTerminal({ sessionId: "s", ...request });
  return { asked, grant, terminal };
}

const line = "echo a; rm -rf b";

test.each<[string, unknown, Omit<CreateTerminalRequest, "sessionId">, "granted" | "refused"]>([
  ["a line, as the same line", { command: line }, { command: line }, "granted"],
  ["a line, passed to a shell", { command: line }, { command: "/bin/bash", args: ["-lc", line] }, "granted"],
  ["a plain line, as its words", { command: "ls -l b" }, { command: "ls", args: ["-l", "b"] }, "granted"],
  [
    "words, as the same words",
    { command: "echo", args: ["a; b"] },
    { command: "echo", args: ["a; b"] },
    "granted",
  ],
  [
    "words, passed to a shell",
    { command: "echo", args: ["a; rm -rf b"] },
    { command: "sh", args: ["-c", line] },
    "refused",
  ],
  ["words, as a line", { command: ["echo", "a; rm -rf b"] }, { command: line }, "refused"],
  [
    "words, split differently",
    { command: "rm", args: ["a", "b"] },
    { command: "rm", args: ["a b"] },
    "refused",
  ],
  [
    "a line, with its words split differently",
    { command: "rm a b" },
    { command: "rm", args: ["a b"] },
    "refused",
  ],
  ["with variables", { command: "ls" }, { command: "ls", env: [{ name: "PATH", value: "/x" }] }, "refused"],
])("run only the exact command that was approved with a call: %s", async (_, input, request, verdict) => {
  const { grant, terminal } = openPermissions();
  expect(await grant(input)).toEqual({ outcome: "selected", optionId: "yes" });
  expect(await terminal(request)).toBe(verdict);
});

test("ask a person with the variables and the folder", async () => {
  const { asked, terminal } = openPermissions();
  const env = [{ name: "LD_PRELOAD", value: "/tmp/x.so" }];
  await terminal({ command: "ls", env, cwd: "/place/sub" });
  expect(asked[0]?.arguments).toEqual({ command: "ls", args: [], env, cwd: "/place/sub" });
});

test("an answer in one prompt of a run does not apply to the next", async () => {
  const [first, next] = [openPermissions("d1"), openPermissions("d2")];
  await first.grant({ command: "ls" });
  await first.grant({ command: "ls" });
  await next.grant({ command: "ls" });
  const ids = [...first.asked, ...next.asked].map(({ id }) => id);
  expect(new Set(ids).size).toBe(3);
});
