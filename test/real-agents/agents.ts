// The real agents under test. Each one is configured to use a twin in place of its provider and has no other network
// access.

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TwinApi } from "../../src/entry-testing.ts";

export interface RealAgent {
  /** The agent's name in acp.agents. */
  readonly name: string;
  /** The agent's package in the package.json next to this file. */
  readonly package: string;
  /** The program in the agent's package, run with Node. */
  readonly main: string;
  readonly args: readonly string[];
  readonly api: TwinApi;
  /** The agent's environment, in addition to PATH and HOME. `origin` is the twin's address. */
  env(origin: string): Readonly<Record<string, string>>;
  /** The files in the agent's home folder. */
  readonly files: (origin: string) => Readonly<Record<string, string>>;
  /** The call to the agent's own tool with which a model writes note.txt. The agent asks for permission first. */
  writes(cwd: string): { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
  /** A model that the agent's session selects, under the name that the provider receives. `null` if not tested. */
  readonly model: string | null;
  /** Why the agent cannot continue an earlier session, or `null` if it can. */
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
      // Newer models receive messages with the role system, for which the twin has no rule.
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
    // By default, this agent does not ask about actions within its own sandbox.
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
    // If no model is set, this agent first asks another model which one to use.
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

/** Prepares an agent's home folder. */
export function furnish(home: string, { files }: RealAgent, origin: string): void {
  for (const [path, text] of Object.entries(files(origin))) {
    const file = join(home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

function codexSettings(origin: string): string {
  // One of the models to which the agent offers its tools by name.
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
