// The tested real agents, and how each is pointed at a twin instead of its provider, without any other network access.

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TwinApi } from "../../src/entry-testing.ts";

export interface RealAgent {
  /** Its name in acp.agents. */
  readonly name: string;
  /** Its package in the package.json next to this file. */
  readonly package: string;
  /** The program of its package, run by Node. */
  readonly main: string;
  readonly args: readonly string[];
  readonly api: TwinApi;
  /** Its environment, in addition to PATH and HOME; `origin` is the address of the twin. */
  env(origin: string): Readonly<Record<string, string>>;
  /** The files in its home. */
  readonly files: (origin: string) => Readonly<Record<string, string>>;
  /** The call of its own tool with which a model writes note.txt; it asks for permission first. */
  writes(cwd: string): { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
  /** A model that its session selects, under the name that its provider receives; `null`: not tested. */
  readonly model: string | null;
  /** The reason why it cannot continue an earlier session; `null`: it can. */
  readonly cannotResume: string | null;
}

const command = "echo a line > note.txt";

export const realAgents: readonly RealAgent[] = [
  {
    name: "claude",
    package: "@agentclientprotocol/claude-agent-acp",
    main: "dist/index.js",
    args: [],
    api: "anthropic-messages",
    env: (origin) => ({
      ANTHROPIC_BASE_URL: origin,
      ANTHROPIC_API_KEY: "any",
      // Newer ones receive messages with the role system, which the twin has no rule for.
      ANTHROPIC_MODEL: "claude-sonnet-4-5",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      NO_BROWSER: "1",
    }),
    files: () => ({}),
    writes: (cwd) => ({
      name: "Write",
      arguments: { file_path: join(cwd, "note.txt"), content: "a line\n" },
    }),
    model: null,
    cannotResume: null,
  },
  {
    name: "codex",
    package: "@agentclientprotocol/codex-acp",
    main: "dist/index.js",
    args: [],
    api: "openai-responses",
    // By default it does not ask about actions within its own sandbox.
    env: () => ({ TWIN_KEY: "any", INITIAL_AGENT_MODE: "read-only", NO_BROWSER: "1" }),
    files: (origin) => ({ ".codex/config.toml": codexSettings(origin) }),
    writes: () => ({
      name: "exec_command",
      arguments: { cmd: command, sandbox_permissions: "require_escalated", justification: "To write it." },
    }),
    model: null,
    cannotResume: null,
  },
  {
    name: "gemini",
    package: "@google/gemini-cli",
    main: "bundle/gemini.js",
    // Without a model it first asks another model which one to use.
    args: ["--acp", "--model", "gemini-2.5-pro"],
    api: "google-generative-ai",
    env: (origin) => ({ GOOGLE_GEMINI_BASE_URL: origin, GEMINI_API_KEY: "any" }),
    files: () => ({ ".gemini/settings.json": quiet("gemini-api-key") }),
    writes: () => ({ name: "run_shell_command", arguments: { command } }),
    model: "gemini-3.5-flash-lite",
    cannotResume: "it loses a session that is loaded in the minute in which it began",
  },
  {
    name: "qwen",
    package: "@qwen-code/qwen-code",
    main: "cli-entry.js",
    args: ["--acp", "--approval-mode", "default"],
    api: "openai-completions",
    env: (origin) => ({ OPENAI_BASE_URL: `${origin}/v1`, OPENAI_API_KEY: "any", OPENAI_MODEL: "gpt-4.1" }),
    files: () => ({ ".qwen/settings.json": quiet("openai") }),
    writes: () => ({
      name: "run_shell_command",
      arguments: { command, description: "Writes the note", is_background: false },
    }),
    model: null,
    cannotResume: null,
  },
];

/** Prepares the home of an agent. */
export function furnish(home: string, { files }: RealAgent, origin: string): void {
  for (const [path, text] of Object.entries(files(origin))) {
    const file = join(home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

function codexSettings(origin: string): string {
  // One of the models that it gives its tools by name.
  return `model = "gpt-5"
model_provider = "twin"
check_for_update_on_startup = false

[model_providers.twin]
name = "Twin"
base_url = "${origin}/v1"
wire_api = "responses"
env_key = "TWIN_KEY"

[analytics]
enabled = false
`;
}

/** For Gemini CLI and its forks. */
function quiet(selectedType: string): string {
  return JSON.stringify({
    general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    security: { auth: { selectedType } },
  });
}
