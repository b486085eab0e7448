import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { toyPids, writeToy } from "../support/acp-toys.ts";
import { run } from "../support/cli.ts";
import { isAlive } from "../support/marked.ts";

let folder = "";
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "skein-doctor-acp-")));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Agents are looked up in the folder, and the shell that starts them is found by its path. */
const doctor = (args: readonly string[], env: Record<string, string> = {}) =>
  run(["doctor", ...args, "--dir", join(folder, ".skein")], {
    cwd: folder,
    env: { PATH: folder, SKEIN_GATEWAY__PORT: "0", ...env },
  });

interface DoctorReport {
  readonly ok: boolean;
  readonly exit: number;
  readonly findings: readonly Readonly<Record<"area" | "severity" | "file" | "what" | "remedy", string>>[];
  readonly acp: {
    readonly agents: readonly {
      readonly name: string;
      readonly answers: boolean;
      readonly file?: string;
      readonly install?: string;
    }[];
  };
}

async function found(env: Record<string, string> = {}): Promise<DoctorReport> {
  const { out, exit } = await doctor(["--json"], env);
  return { ...JSON.parse(out), exit };
}

const configure = (text: string) => writeFileSync(join(folder, "skein.yaml"), text);
const acpPart = (out: string) => /\nACP agents\n([\s\S]*?)\n\n/.exec(out)?.[1]?.replaceAll(folder, "~");

describe("doctor and ACP agents", () => {
  test("[ACF6] an agent that answers is listed with its identity and capabilities, and leaves no process", async () => {
    writeToy(folder, "gemini", "answers");
    configure("acp: { agents: { gemini: {} }, defaultAgent: gemini }");
    const { acp, findings, ok, exit } = await found();
    expect({ ok, exit, findings }).toEqual({ ok: true, exit: 0, findings: [] });
    expect(acp).toEqual({
      agents: [
        {
          name: "gemini",
          command: "gemini",
          file: join(folder, "gemini"),
          isAllowed: true,
          isDefault: true,
          answers: true,
          title: "Toy Agent",
          version: "1.2.3",
          protocolVersion: 1,
          can: { load: true, resume: true, fork: false, list: false },
          authMethods: ["API key", "web"],
        },
      ],
      others: [],
    });
    expect(toyPids(folder, "gemini").filter(isAlive)).toEqual([]);
    expect(acpPart((await doctor([])).out)).toBe(
      "  answers  gemini: Toy Agent 1.2.3 (the default); ~/gemini; sessions: new, load, resume; sign-in: API key, web",
    );
  });

  test("[ACF6] an agent that does not answer is a warning with a remedy and masked secrets", async () => {
    writeToy(folder, "toy", "exits");
    configure(
      "acp:\n  allowedAgents: [qwen]\n  agents:\n    qwen:\n    own: { command: nowhere }\n" +
        "    toy: { command: toy, env: { TOY_KEY: hunter2-and-more } }\n",
    );
    const { acp, findings, ok, exit } = await found();
    expect({ ok, exit }).toEqual({ ok: true, exit: 0 });
    expect(acp.agents.map(({ name, answers, file, install }) => [name, answers, file, install])).toEqual([
      ["qwen", false, undefined, "npm install -g @qwen-code/qwen-code"],
      ["own", false, undefined, undefined],
      ["toy", false, join(folder, "toy"), undefined],
    ]);
    const told = findings.map(({ area, severity, file, what, remedy }) => [
      `${area} ${severity} ${file}`,
      what.replace("The agent is not available: ", ""),
      remedy,
    ]);
    expect(told.map(([place]) => place)).toEqual(
      ["qwen", "own", "toy"].map((name) => `acp warning acp.agents.${name}`),
    );
    expect(told[0]?.slice(1)).toEqual([
      'the command "qwen" was not found on PATH',
      "Install it (npm install -g @qwen-code/qwen-code), or correct acp.agents.qwen.command",
    ]);
    expect(told[1]?.[2]).toBe("Install it, or correct acp.agents.own.command");
    expect(told[2]?.[1]).toMatch(
      /^it did not respond; it exited with code 3; its stderr ends with: key .+ is not known$/,
    );
    expect(JSON.stringify(acp)).not.toContain("hunter2");
    expect(told[2]?.[2]).toBe("Run toy manually, check its output, and correct acp.agents.toy");
    expect(toyPids(folder, "toy").filter(isAlive)).toEqual([]);
  });

  test("[ACF6] a hanging agent delays the doctor no longer than the start timeout", async () => {
    writeToy(folder, "silent", "hangs");
    configure("acp: { startTimeoutSeconds: 1, agents: { silent: { command: silent } } }");
    const { acp, findings, ok } = await found();
    expect(acp.agents).toMatchObject([{ answers: false, problem: "it did not respond within 1 s" }]);
    expect([ok, findings.length]).toEqual([true, 1]);
    expect(toyPids(folder, "silent").filter(isAlive)).toEqual([]);
    const { out } = await doctor([]);
    expect(acpPart(out)).toMatch(
      /^ {2}warning {2}acp\.agents\.silent: The agent is not available: it did not respond/,
    );
    expect(out).toContain("Files and ports\n  no problems found\n");
  });

  test("[ACF6] well-known agents that are installed but not configured are named, with the lines to add; none is started", async () => {
    writeToy(folder, "gemini", "answers");
    writeToy(folder, "goose", "answers");
    const { acp } = await found();
    expect(acp).toEqual({
      agents: [],
      others: [
        { name: "gemini", title: "Gemini CLI", file: join(folder, "gemini") },
        { name: "goose", title: "goose", file: join(folder, "goose") },
      ],
    });
    const { out } = await doctor([]);
    expect(acpPart(out)).toBe(
      "  installed: Gemini CLI, goose; to let sessions spawn them, add this to the configuration:\n" +
        "    acp:\n      agents: { gemini: {}, goose: {} }",
    );
    expect([...toyPids(folder, "gemini"), ...toyPids(folder, "goose")]).toEqual([]);
    configure("acp:\n  agents: { gemini: {}, goose: {} }\n");
    expect((await found()).acp).toMatchObject({ agents: [{ answers: true }, { answers: true }], others: [] });
  });

  test("[ACF6] next to configured ones they are named in one line, except those configured under another name", async () => {
    writeToy(folder, "gemini", "terse");
    writeToy(folder, "opencode", "answers");
    configure("acp: { agents: { mine: { command: gemini, args: [--acp] } } }");
    expect(acpPart((await doctor([])).out)).toBe(
      "  answers  mine: gemini; ~/gemini; new sessions only\n" +
        "  also installed: opencode; to let sessions spawn them, add this to acp.agents: opencode: {}",
    );
  });

  test("[ACF6] without any, nothing is printed", async () => {
    expect((await found()).acp).toEqual({ agents: [], others: [] });
    expect((await doctor([])).out).not.toContain("ACP");
  });
});
