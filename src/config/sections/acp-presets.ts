/** A well-known agent that supports the Agent Client Protocol. The configuration needs only its name. */
export interface AcpPreset {
  readonly title: string;
  readonly command: string;
  readonly args: readonly string[];
  /** A command line that installs the agent, or a link to instructions. */
  readonly install: string;
  /** What the agent requires in addition, or what its adapter includes. */
  readonly note?: string;
}

/**
 * The entries were checked on 2026-11-16. claude, codex, gemini, pi (only its adapter) and qwen were started and
 * queried. cline and kimi were compared with their npm packages. auggie, copilot, cursor, goose, opencode and vibe were
 * not tested; their entries come from the public ACP agent registry, other clients or the vendors' pages. To override
 * an entry, set `command` and `args` in the configuration.
 */
export const acpPresets: Readonly<Record<string, AcpPreset>> = {
  auggie: {
    title: "Auggie",
    command: "auggie",
    args: ["--acp"],
    install: "npm install -g @augmentcode/auggie",
  },
  claude: {
    title: "Claude Code",
    command: "claude-agent-acp",
    args: [],
    install: "npm install -g @agentclientprotocol/claude-agent-acp",
    note: "The adapter includes the parts of Claude Code that it needs",
  },
  cline: { title: "Cline", command: "cline", args: ["--acp"], install: "npm install -g cline" },
  codex: {
    title: "Codex",
    command: "codex-acp",
    args: [],
    install: "npm install -g @agentclientprotocol/codex-acp",
    note: "The adapter includes Codex; set CODEX_PATH in env to use a different installation",
  },
  copilot: {
    title: "GitHub Copilot",
    command: "copilot",
    args: ["--acp"],
    install: "npm install -g @github/copilot",
  },
  cursor: {
    title: "Cursor",
    command: "cursor-agent",
    args: ["acp"],
    install: "see https://cursor.com/docs/cli/acp",
  },
  gemini: {
    title: "Gemini CLI",
    command: "gemini",
    args: ["--acp"],
    install: "npm install -g @google/gemini-cli",
  },
  goose: { title: "goose", command: "goose", args: ["acp"], install: "see https://block.github.io/goose" },
  kimi: {
    title: "Kimi Code",
    command: "kimi",
    args: ["acp"],
    install: "npm install -g @moonshot-ai/kimi-code",
  },
  opencode: { title: "opencode", command: "opencode", args: ["acp"], install: "npm install -g opencode-ai" },
  pi: {
    title: "pi",
    command: "pi-acp",
    args: [],
    install: "npm install -g pi-acp",
    note: "The adapter starts pi, which must be installed too: npm install -g @earendil-works/pi-coding-agent",
  },
  qwen: {
    title: "Qwen Code",
    command: "qwen",
    args: ["--acp"],
    install: "npm install -g @qwen-code/qwen-code",
  },
  vibe: {
    title: "Mistral Vibe",
    command: "vibe-acp",
    args: [],
    install: "see https://github.com/mistralai/mistral-vibe",
  },
};
