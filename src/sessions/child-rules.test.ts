import { describe, expect, test } from "vitest";
import { childDenyList, childSystemBlock, childToolLayers, firstMessage } from "./child-rules.ts";

const none = { allow: [], deny: [] };
const base = [
  "sessions_list",
  "sessions_history",
  "sessions_send",
  "gateway",
  "agents_list",
  "whatsapp_login",
  "session_status",
  "cron",
  "memory_search",
  "memory_get",
];
const leaf = [...base, "sessions_spawn", "sessions_yield", "subagents", "session_search", "session_list"];

describe("tools denied to sub-agents", () => {
  test.each([
    ["leaf", none, leaf],
    ["orchestrator", none, base],
    ["leaf", { allow: ["cron"], deny: ["bash"] }, [...leaf.filter((name) => name !== "cron"), "bash"]],
    [
      "orchestrator",
      { allow: ["group:sessions"], deny: [] },
      base.filter((name) => !/session|agents/.test(name)),
    ],
    [
      "orchestrator",
      { allow: ["memory_*"], deny: ["memory_get"] },
      base.filter((name) => name !== "memory_search"),
    ],
    ["leaf", { allow: ["*"], deny: [] }, []],
  ] as const)("[POL3] for a %s under %j", (role, tools, expected) => {
    expect(childDenyList(role, tools).toSorted()).toEqual(expected.toSorted());
  });

  test("[POL3] apply only to spawned sessions, together with those recorded at the spawn", () => {
    expect(childToolLayers({}, { tools: none })).toEqual([]);
    const toolLayers = [{ of: "agent main", allow: ["read"], deny: ["bash"] }];
    const meta = { spawnedBy: "agent:main:main", role: "orchestrator", toolLayers };
    expect(childToolLayers(meta, null)).toEqual([
      ...toolLayers,
      { of: "sub-agents", deny: childDenyList("orchestrator", none) },
    ]);
    expect(childToolLayers({ spawnedBy: "agent:main:main" }, null)).toEqual([
      { of: "sub-agents", deny: childDenyList("leaf", none) },
    ]);
  });

  test.each(["x", [null], [{ of: 1 }], [{ of: "a", allow: "read" }], [{ of: "a", deny: [1] }]])(
    "[POL3] unreadable rules (%j) allow nothing",
    (toolLayers) => {
      const [first] = childToolLayers({ spawnedBy: "agent:main:main", toolLayers }, null);
      expect(first).toMatchObject({ allow: [] });
    },
  );
});

describe("what sub-agents receive", () => {
  test("[SPN9] every run of a spawned session gets a prompt that says it is a sub-agent", () => {
    expect(childSystemBlock({})).toBeNull();
    const block = childSystemBlock({ spawnedBy: "agent:main:main", role: "leaf", spawnDepth: 2 });
    expect(block).toMatch(/^# Subagent\n\nYou are a sub-agent \(role: leaf, depth: 2\)/);
    expect(block).toContain("You cannot spawn");
    expect(childSystemBlock({ spawnedBy: "agent:main:main", role: "orchestrator" })).toContain(
      "sessions_yield",
    );
  });

  test("[SPN9] the first message has the depth, the files with their paths, and the task last", () => {
    const receipt = { count: 1, totalBytes: 3, files: [{ name: "a.txt", bytes: 3, sha256: "0" }] };
    const words = { task: "Sum up", depth: 1, maxDepth: 2, mode: "run" as const };
    const text = firstMessage({ ...words, attachments: { path: "in/put", receipt } });
    expect(text).toMatch(/^\[Subagent Context\] .*\(depth 1\/2\)/);
    expect(text).toContain("- a.txt (3 bytes): in/put/a.txt");
    expect(text).toContain("untrusted");
    expect(text.endsWith("\n\n[Subagent Task]: Sum up")).toBe(true);
    expect(firstMessage({ ...words, attachments: null })).not.toContain("Attachments");
  });
});
