import { filePath, flag, httpAddress, optional, text, wholeNumber } from "../settings/kinds.ts";
import type { Unused } from "../settings/setting.ts";
import { group, list, setting, table } from "../settings/setting.ts";
import { environment, headers, keysLike } from "./tables.ts";

const command = optional("The server's program, which speaks MCP over stdio.", text, "none");

const url = optional("The URL of the server.", httpAddress, "none");

/** If an environment variable adds a second one, `command` wins. */
function unused({ command, url }: Readonly<Record<string, unknown>>): readonly Unused[] {
  const because = command !== null ? "command" : url !== null ? "url" : null;
  if (because === null) return [];
  const others = because === "command" ? ["url", "headers"] : ["args", "env", "cwd"];
  const expected =
    because === "command" ? "it next to url, without command" : "it next to command, without url";
  return others.map((field) => ({
    field,
    because,
    expected: field === "url" ? "either command or url" : expected,
  }));
}

const server = group(
  "An MCP server: a command to start, or a URL to connect to.",
  {
    command,
    args: list("With command: its arguments, in order.", text),
    env: environment(
      "With command: its environment variables.",
      "With command: an environment variable; never shown.",
    ),
    cwd: optional(
      "With command: its working directory; null: that of Skein.",
      filePath,
      "where Skein was started",
    ),
    url,
    headers,
    timeoutSeconds: setting("Timeout of a call in seconds.", wholeNumber(1, 86_400), 60),
    approval: setting("Whether each call of its tools needs a person's approval.", flag, false),
  },
  { unused, oneOf: ["command", "url"] },
);

export const mcpServers = table(
  "MCP servers whose tools agents may use, by a name that you choose.",
  keysLike(
    "<server>",
    "a name: letters, digits, underscore and hyphen, at most 64, beginning with a letter or digit",
    "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$",
  ),
  server,
);
