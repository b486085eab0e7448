import { filePath, flag, httpAddress, orNone, text, wholeNumber } from "../settings/kinds.ts";
import type { Group, List, Setting, Table, Unused, ValueKind } from "../settings/setting.ts";
import { environment } from "./environment.ts";
import { headers } from "./headers.ts";

/** MCP servers: a program that is started (`command`), or one that is reached (`url`). */

function optional(about: string, kind: ValueKind<string>, meaning: string): Setting<string | null> {
  return { node: "setting", about, kind: orNone(kind, meaning), fallback: () => null };
}

const command = optional("The program that is the server, spoken to by stdio.", text, "none");
const args: List<string> = { node: "list", about: "With command: its arguments, in order.", of: text };

const env = environment(
  "With command: variables of its environment.",
  "With command: a variable of its environment; never shown.",
);

const cwd = optional(
  "With command: the folder that it is started in; null: where Skein was.",
  filePath,
  "where Skein was started",
);
const url = optional("Where the server is reached, by HTTP.", httpAddress, "none");

const timeoutSeconds: Setting<number> = {
  node: "setting",
  about: "How many seconds it may take to answer.",
  kind: wholeNumber(1, 86_400),
  fallback: () => 60,
};

const approval: Setting<boolean> = {
  node: "setting",
  about: "Whether a person is asked before each call of its tools.",
  kind: flag,
  fallback: () => false,
};

/** With both, `command` counts: only a variable can bring that about. */
function unused({ command, url }: Readonly<Record<string, unknown>>): readonly Unused[] {
  const because = command !== null ? "command" : url !== null ? "url" : null;
  if (because === null) return [];
  const others = because === "command" ? ["url", "headers"] : ["args", "env", "cwd"];
  const expected =
    because === "command" ? "it beside url, without command" : "it beside command, without url";
  return others.map((field) => ({
    field,
    because,
    expected: field === "url" ? "either command or url" : expected,
  }));
}

const server = {
  node: "group",
  about: "An MCP server: a command that is started, or a url that is reached.",
  fields: { command, args, env, cwd, url, headers, timeoutSeconds, approval },
  unused,
  oneOf: ["command", "url"],
} satisfies Group;

export const mcpServers: Table<typeof server> = {
  node: "table",
  about: "MCP servers whose tools agents may have, by a name of your own.",
  keyName: "<server>",
  keyExpected: "a name: letters, digits, underscore and hyphen, at most 64, beginning with a letter or digit",
  keySchema: { pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" },
  readKey: (name) => (/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(name) ? name : null),
  of: server,
  fallbackKeys: [],
};
