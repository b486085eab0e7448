import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { acpAgentOf, acpInstall } from "./acp-agents.ts";
import { effectiveConfigText } from "./effective.ts";
import { checkConfig } from "./load.ts";
import { problemText } from "./problems.ts";
import { secretValues } from "./secrets.ts";
import { acpPresets } from "./sections/acp-presets.ts";

let home = "";
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "skein-acp-config-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

async function check(text: string, env: Record<string, string> = {}) {
  const file = join(home, "skein.yaml");
  writeFileSync(file, text);
  const { loaded, problems } = await checkConfig({ cwd: home, env: { HOME: home, ...env } });
  return { ...loaded, told: problems.map((problem) => problemText(problem).replace(`${file}:`, "")) };
}

const known = Object.keys(acpPresets).join(", ");
const aCommand = `expected a command, or the name of a well-known agent (${known})`;

describe("ACP agents", () => {
  test("accepts one with a command, and a well-known one by name only", async () => {
    const { config, told } = await check(
      'acp:\n  agents:\n    gemini:\n    own: { command: ./agent, args: [-v, "a b"], env: { Key: "${K}" }, permissions: deny }\n' +
        "  allowedAgents: [gemini]\n  defaultAgent: gemini\n",
      { K: "hunter2" },
    );
    expect(told).toEqual([]);
    expect(acpAgentOf(config, "gemini")).toEqual({
      name: "gemini",
      command: "gemini",
      args: ["--acp"],
      env: {},
      permissions: "ask",
    });
    expect(acpAgentOf(config, "own")).toEqual({
      name: "own",
      command: "./agent",
      args: ["-v", "a b"],
      env: { Key: "hunter2" },
      permissions: "deny",
    });
    expect(acpAgentOf(config, "constructor")).toBeNull();
    expect(acpAgentOf(config, "claude")).toBeNull();
  });

  test("arguments follow those of the well-known agent, and a command replaces its command", async () => {
    const { config } = await check(
      "acp: { permissions: allow, agents: { gemini: { args: [--model, x] }, codex: { command: other, args: [a] } } }",
    );
    expect(acpAgentOf(config, "gemini")).toMatchObject({
      args: ["--acp", "--model", "x"],
      permissions: "allow",
    });
    expect(acpAgentOf(config, "codex")).toMatchObject({ command: "other", args: ["a"] });
  });

  test.each([
    ["acp: { agents: { mine: {} } }", `1:24: acp.agents.mine: found no command, ${aCommand}`],
    ["acp:\n  agents:\n    mine:\n", `3:10: acp.agents.mine: found no command, ${aCommand}`],
    [
      "acp: { agents: { cluade: { args: [a] } } }",
      `1:26: acp.agents.cluade: found no command, ${aCommand} (did you mean claude?)`,
    ],
    ["acp: { agents: { constructor: {} } }", `1:31: acp.agents.constructor: found no command, ${aCommand}`],
    [
      "acp: { agents: { claude: , pi: }, allowedAgents: [pi, cluade] }",
      '1:55: acp.allowedAgents.1: found "cluade", expected one of acp.agents (claude, pi) (did you mean claude?)',
    ],
    [
      "acp: { agents: { claude: , pi: }, allowedAgents: [pi], defaultAgent: claude }",
      '1:70: acp.defaultAgent: found "claude", expected one of acp.allowedAgents (pi)',
    ],
    [
      "acp: { defaultAgent: claude }",
      '1:22: acp.defaultAgent: found "claude", expected nothing, because acp.agents is empty',
    ],
    [
      "acp: { agents: { Claude: {} } }",
      '1:18: acp.agents: found the key "Claude", expected an ACP agent name: up to 64 lowercase letters, digits, underscores and hyphens',
    ],
    [
      "acp: { permissions: alow }",
      '1:21: acp.permissions: found "alow", expected "allow", "ask" or "deny" (did you mean "allow"?)',
    ],
  ])("%j is a mistake", async (text, expected) => {
    expect((await check(text)).told).toEqual([expected]);
  });

  test("a mistake is reported once, at its position, without consequential errors", async () => {
    const { told } = await check('acp: { agents: { mine: { command: "${NONE}" } }, defaultAgent: other }');
    expect(told).toHaveLength(1);
    expect(told[0]).toContain("NONE");
    expect((await check("acp: { agents: { mine: { comand: x } }, defaultAgent: other }")).told).toHaveLength(
      1,
    );
  });

  test("the environment may contain the whole section, and its mistakes name the variable", async () => {
    const { config, told } = await check("", {
      SKEIN_ACP__AGENTS__OWN__COMMAND: "./agent",
      SKEIN_ACP__AGENTS__OWN__ENV__API_TOKEN: "t",
      SKEIN_ACP__ALLOWED_AGENTS: "own",
      SKEIN_ACP__DEFAULT_AGENT: "own",
    });
    expect(told).toEqual([]);
    expect(acpAgentOf(config, "own")).toMatchObject({ command: "./agent", env: { API_TOKEN: "t" } });
    const wrong = await check("acp: { agents: { claude: }, allowedAgents: [claude] }", {
      SKEIN_ACP__ALLOWED_AGENTS: "claude,pi",
      SKEIN_ACP__DEFAULT_AGENT: "claude",
    });
    expect(wrong.told).toEqual([
      'SKEIN_ACP__ALLOWED_AGENTS: acp.allowedAgents.1: found "claude,pi", expected one of acp.agents (claude)',
    ]);
    const hidden = await check('acp: { agents: { claude: }, defaultAgent: "${WHICH}" }', {
      WHICH: "hunter2",
    });
    expect(hidden.told).toEqual([
      "1:43: acp.defaultAgent: found the value of ${WHICH}, expected one of acp.agents (claude)",
    ]);
  });

  test("[CFG11] its environment is shown nowhere, and is masked in texts", async () => {
    const right = await check("acp: { agents: { claude: { env: { TEAM: hunter2 } } } }");
    expect(right.told).toEqual([]);
    expect(secretValues(right.config)).toEqual(["hunter2"]);
    expect(effectiveConfigText(right)).toContain('TEAM: "***"');
    expect(effectiveConfigText(right)).not.toContain("hunter2");
    const wrong = await check("acp: { agents: { claude: { env: { TEAM: 1337 } } } }");
    expect(wrong.told).toEqual(["1:41: acp.agents.claude.env.TEAM: found a hidden value, expected text"]);
  });

  test("a well-known agent has start and installation instructions; another one does not", () => {
    for (const [name, preset] of Object.entries(acpPresets)) {
      expect(name).toMatch(/^[a-z0-9][a-z0-9_-]{0,63}$/);
      expect(preset.command).toMatch(/^[a-z-]+$/);
      expect(preset.install).toMatch(/^(?:npm install -g \S+|see https:\/\/\S+)$/);
      expect(acpInstall(preset)).toBe(preset.install);
    }
    expect(acpInstall({ command: "./agent" })).toBeNull();
  });

  test("docs/acp.md lists exactly the well-known agents", () => {
    const page = readFileSync(new URL("../../docs/acp.md", import.meta.url), "utf8");
    const [, part = ""] = page.split("## Well-known agents");
    const listed = [...part.matchAll(/^\| `(.+?)` \| (.+?) \| `(.+?)` \| (.+) \|$/gm)].map((row) =>
      row.slice(1, 5),
    );
    const shown = (install: string) =>
      install.startsWith("see ") ? `see <${install.slice(4)}>` : `\`${install}\``;
    expect(listed.slice(0, Object.keys(acpPresets).length)).toEqual(
      Object.entries(acpPresets).map(([name, { title, command, args, install }]) => [
        name,
        title,
        [command, ...args].join(" "),
        shown(install),
      ]),
    );
  });
});
