import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { effectiveConfigText } from "./effective.ts";
import { checkConfig } from "./load.ts";
import { problemText } from "./problems.ts";

let home = "";
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "skein-mcp-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

async function check(text: string, env: Record<string, string> = {}) {
  const file = join(home, "skein.yaml");
  writeFileSync(file, text);
  const { loaded, problems } = await checkConfig({ cwd: home, env: { HOME: home, ...env } });
  return { ...loaded, told: problems.map((problem) => problemText(problem).replace(`${file}:`, "")) };
}

describe("MCP servers", () => {
  test("accepts a command and a URL", async () => {
    const { config, told } = await check(
      'mcpServers:\n  files: { command: npx, args: [-y, "a b"], env: { Key: "${K}", EMPTY: "" }, cwd: sub }\n' +
        "  web: { url: https://x.org/mcp, headers: { x-team: a }, timeoutSeconds: 5 }\n",
      { K: "hunter2" },
    );
    expect(told).toEqual([]);
    expect(config.mcpServers).toMatchObject({
      files: {
        command: "npx",
        args: ["-y", "a b"],
        env: { Key: "hunter2", EMPTY: "" },
        cwd: join(home, "sub"),
        url: null,
        timeoutSeconds: 60,
      },
      web: { command: null, url: "https://x.org/mcp", headers: { "x-team": "a" }, timeoutSeconds: 5 },
    });
  });

  test.each([
    [
      "mcpServers:\n  a: { timeoutSeconds: 5 }",
      "2:6: mcpServers.a: found no command or url, expected command or url",
    ],
    ["mcpServers:\n  a:\n", "2:5: mcpServers.a: found no command or url, expected command or url"],
    [
      "mcpServers: { a: { command: x, url: 'http://x' } }",
      "1:32: mcpServers.a: found url, expected either command or url",
    ],
    [
      "mcpServers: { a: { command: x, headers: { b: c } } }",
      "1:32: mcpServers.a: found headers, expected this key only with url and without command",
    ],
    [
      "mcpServers: { a: { url: 'http://x', args: [b] } }",
      "1:37: mcpServers.a: found args, expected this key only with command and without url",
    ],
    [
      "mcpServers: { a: { url: 'http://x', env: { B: c } } }",
      "1:37: mcpServers.a: found env, expected this key only with command and without url",
    ],
    [
      "mcpServers: { a: { url: 'http://x', cwd: b } }",
      "1:37: mcpServers.a: found cwd, expected this key only with command and without url",
    ],
  ])("%j is a mistake", async (text, expected) => {
    expect((await check(text)).told).toEqual([expected]);
  });

  test("secrets are shown nowhere, valid or not", async () => {
    const right = await check(
      "mcpServers: { a: { command: x, env: { TEAM: hunter2 } }, b: { url: 'http://x', headers: { t: hunter2 } } }",
    );
    expect(right.told).toEqual([]);
    expect(effectiveConfigText(right)).toContain('TEAM: "***"');
    expect(effectiveConfigText(right)).not.toContain("hunter2");
    const wrong = await check("mcpServers: { a: { command: x, env: { TEAM: 1337 } } }");
    expect(wrong.told).toEqual(["1:45: mcpServers.a.env.TEAM: found a hidden value, expected text"]);
  });

  test("the environment may contain the whole section, and a variable's name keeps its case", async () => {
    const { config, told } = await check("", {
      SKEIN_MCP_SERVERS__FILES__COMMAND: "npx",
      SKEIN_MCP_SERVERS__FILES__ARGS: "-y,server",
      SKEIN_MCP_SERVERS__FILES__ENV__API_TOKEN: "t",
    });
    expect(told).toEqual([]);
    expect(config.mcpServers.files).toMatchObject({
      command: "npx",
      args: ["-y", "server"],
      env: { API_TOKEN: "t" },
    });
    const both = await check("mcpServers: { a: { command: x, env: { token: a, TOKEN: b } } }", {
      SKEIN_MCP_SERVERS__A__ENV__TOKEN: "c",
    });
    expect(both.config.mcpServers.a?.env).toEqual({ token: "a", TOKEN: "c" });
  });
});
