import { filePath, flag, httpAddress, optional, text, wholeNumber } from "../settings/kinds.ts";
import type { Table, Unused } from "../settings/setting.ts";
import { group, list, setting } from "../settings/setting.ts";
import { environment, headers, keysLike } from "./tables.ts";

/** MCP servers: a program that is started (`command`), or one that is reached (`url`). */

const command = optional("The program that is the server, spoken to by stdio.", text, "none");

const url = optional("Where the server is reached, by HTTP.", httpAddress, "none");

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

const server = group(
  "An MCP server: a command that is started, or a url that is reached.",
  {
    command,
    args: list("With command: its arguments, in order.", text),
    env: environment(
      "With command: variables of its environment.",
      "With command: a variable of its environment; never shown.",
    ),
    cwd: optional(
      "With command: the folder that it is started in; null: where Skein was.",
      filePath,
      "where Skein was started",
    ),
    url,
    headers,
    timeoutSeconds: setting("How many seconds it may take to answer.", wholeNumber(1, 86_400), 60),
    approval: setting("Whether a person is asked before each call of its tools.", flag, false),
  },
  { unused, oneOf: ["command", "url"] },
);

export const mcpServers: Table<typeof server> = {
  node: "table",
  about: "MCP servers whose tools agents may have, by a name of your own.",
  keyName: "<server>",
  keyExpected: "a name: letters, digits, underscore and hyphen, at most 64, beginning with a letter or digit",
  ...keysLike("^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"),
  of: server,
};
