import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fakeApp } from "../../test/support/fake-app.ts";
import { anyKey } from "../../test/support/keys.ts";
import { formatKey } from "../core/keys.ts";
import { checkNamespace, defaultNamespace } from "../core/namespace.ts";
import { userSegment } from "../core/path-segment.ts";
import type { FileBoundary } from "../file-access/file-boundary.ts";
import { homeOf } from "../store/files/layout.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import { resolveSessionTarget } from "./resolve-context.ts";
import type { RuntimeContext } from "./runtime-context.ts";

const store = createMemoryStore();
const resolveCwd: FileBoundary["resolveCwd"] = ({ userId, agentId }, wanted) => {
  if (wanted === "/root-folder") return { refusal: "in_root_folder" };
  if (wanted === "/outside") return { refusal: "outside" };
  return {
    cwd: wanted ?? (agentId === "research" ? "/srv/research" : `/spaces/${userId ?? "-"}/${agentId}`),
  };
};
const enter = ({ userId = null }: RuntimeContext) => {
  if (userId !== null) userSegment(userId);
  return userId;
};
const members = { store, spaces: { enter }, agents: { first: "main" }, files: { resolveCwd } };
const defaults = fakeApp({ ...members, config: { session: { scope: "per-sender" } } });
const shared = fakeApp({ ...members, config: { session: { scope: "global" } } });
const resolved = (context: RuntimeContext, by = defaults) => resolveSessionTarget(by, context);

describe("defaults of a context", () => {
  test("are the unnamed user, the default agent, its main session and its workspace", () => {
    expect(resolved({})).toEqual({
      userId: null,
      agentId: "main",
      key: "agent:main:main",
      sessionId: null,
      channel: null,
      delivery: null,
      cwd: "/spaces/-/main",
    });
  });

  test.each<[RuntimeContext, string, string, string | null]>([
    [{ agentId: "Research" }, "research", "agent:research:main", null],
    [{ sessionId: "trip" }, "main", "agent:main:session:trip", "trip"],
    [{ sessionId: "trip", agentId: "a" }, "a", "agent:a:session:trip", "trip"],
    [{ sessionKey: "agent:a:cron:x" }, "a", "agent:a:cron:x", null],
    [{ sessionKey: "agent:A:main", sessionId: "s2", agentId: "a" }, "a", "agent:a:main", "s2"],
  ])("%j: agent %s, key %s", (context, agentId, key, sessionId) => {
    expect(resolved(context)).toMatchObject({ agentId, key, sessionId });
  });

  test("if all share one session, it is the main one", () => {
    expect(resolved({ agentId: "a" }, shared)).toMatchObject({ agentId: "a", key: "global" });
    expect(resolved({ sessionKey: "global" }, shared)).toMatchObject({
      agentId: "main",
      key: "global",
    });
    expect(resolved({ sessionId: "trip" }, shared).key).toBe("agent:main:session:trip");
  });

  test("[WKD2] the folder is the given one, the agent's, or the workspace of user and agent", () => {
    expect(resolved({ agentId: "research", cwd: "/here" }).cwd).toBe("/here");
    expect(resolved({ agentId: "research" }).cwd).toBe("/srv/research");
    expect(resolved({ sessionKey: "agent:research:main" }).cwd).toBe("/srv/research");
    expect(resolved({ userId: "ann" }).cwd).toBe("/spaces/ann/main");
  });

  test("[WKD2] the channel is the given one, that of the delivery, or that of the key", () => {
    const sessionKey = "agent:main:slack:group:G1";
    expect(resolved({ sessionKey }).channel).toBe("slack");
    expect(resolved({ sessionKey, delivery: { channel: "irc" } }).channel).toBe("irc");
    expect(resolved({ sessionKey, delivery: { channel: "irc" }, channel: "web" }).channel).toBe("web");
    expect(resolved({ sessionKey: "agent:main:user:ann" }).channel).toBeNull();
  });

  test.each<[string, RuntimeContext, string, string]>([
    [
      "another agent's key",
      { agentId: "b", sessionKey: "agent:a:main" },
      "invalid_arguments",
      'the agent "a", not to "b"',
    ],
    ["an invalid key", { sessionKey: "main" }, "invalid_key", "does not start with"],
    ["global, if it is not shared", { sessionKey: "global" }, "invalid_key", "separate sessions"],
    ["unknown", { sessionKey: "unknown" }, "invalid_key", "does not name a session"],
    ["a bad session id", { sessionId: "../x" }, "invalid_session_id", "does not match"],
    ["a bad agent", { agentId: "a b" }, "invalid_agent_id", "must match"],
    ["an empty user", { userId: "" }, "invalid_user_id", "it is empty"],
    ["a relative folder", { cwd: "work" }, "invalid_arguments", "not absolute"],
    ["a folder inside the root folder", { cwd: "/root-folder" }, "invalid_arguments", "inside Skein's root"],
    ["a folder that is not the agent's", { cwd: "/outside" }, "invalid_arguments", "agents.<id>.roots"],
  ])("%s is refused", (_, context, code, text) => {
    expect(() => resolved(context)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(text) }),
    );
  });

  test("accepts any valid session key unchanged", () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        fc.pre(key.form !== "special");
        const text = formatKey(key);
        expect(resolved({ sessionKey: text }).key).toBe(text);
      }),
    );
  });

  test("contexts are frozen, and no two calls share anything", () => {
    const delivery = { channel: "irc", to: "#a" };
    const context = { userId: "ann", delivery };
    const [first, second] = [resolved(context), resolved(context)];
    delivery.to = "#b";
    expect(first.delivery).toEqual({ channel: "irc", to: "#a" });
    expect(first.delivery).not.toBe(second.delivery);
    expect([first, first.delivery].every((each) => Object.isFrozen(each))).toBe(true);
    expect(resolved(first)).toEqual(first);
    expect(resolved({}).userId).toBeNull();
  });
});

describe("namespaces", () => {
  test("are users and the user ID by default, as in the store; the unnamed user's is the root", () => {
    expect(defaultNamespace({})).toEqual([]);
    expect(checkNamespace(defaultNamespace({ userId: null }))).toEqual([]);
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }), (userId) => {
        const folders = checkNamespace(defaultNamespace({ userId }));
        expect(folders.join("/")).toBe(homeOf(defaultNamespace, userId));
      }),
    );
    expect(checkNamespace(["users", "agents"])).toEqual(["users", "agents"]);
  });

  test.each([
    [
      ["tenants", "ACME/x", "ann"],
      ["tenants", "%41%43%4d%45%2fx", "ann"],
    ],
    [[".."], ["%2e%2e"]],
    [
      ["Users", "ann", "x"],
      ["%55sers", "ann", "x"],
    ],
    [["a".repeat(250)], [expect.stringMatching(/^~[0-9a-f]{64}$/)]],
    [
      ["1", "2", "3", "4", "5", "6", "7", "8"],
      ["1", "2", "3", "4", "5", "6", "7", "8"],
    ],
  ])("%j has the folders %j", (segments, folders) => {
    expect(checkNamespace(segments)).toEqual(folders);
  });

  test.each([
    ...[[""], ["a", ""], ["\ud800"], ["x".repeat(257)], Array(9).fill("a"), [5 as unknown as string]],
    ...[["agents"], ["trash", "x"], ["work.db"], ["work.db-wal"], ["index.db"], ["gateway.json"], ["token"]],
    ...[["tenant", "agents"], ["users"], ["users", "ann", "more"], ["a", "user.json"]],
  ])("%j is refused", (...segments) => {
    expect(() => checkNamespace(segments)).toThrow(
      expect.objectContaining({
        code: "invalid_arguments",
        message: expect.stringContaining("The namespace ["),
      }),
    );
  });

  test("two namespaces never share folders", () => {
    const segment = fc.constantFrom("a", "A", "a/b", "b", "a%2fb", "å", ".", "tenants");
    const namespace = fc.array(segment, { maxLength: 3 });
    fc.assert(
      fc.property(namespace, namespace, (a, b) => {
        const isSame = JSON.stringify(a) === JSON.stringify(b);
        expect(checkNamespace(a).join("/").toLowerCase() === checkNamespace(b).join("/").toLowerCase()).toBe(
          isSame,
        );
        expect(checkNamespace(a).every((folder) => /^[^/.][^/]*$/.test(folder))).toBe(true);
      }),
    );
  });
});
