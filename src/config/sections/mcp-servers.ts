import { filePath, flag, httpAddress, optional, text, wholeNumber } from "../settings/kinds.ts";
import type { Unused } from "../settings/setting.ts";
import { group, list, setting, table } from "../settings/setting.ts";
import { environment, headers, keysLike } from "./tables.ts";

const command = optional("The program to start; it must support MCP over stdio.", text, "none");

const url = optional("The server's URL.", httpAddress, "none");

/**
 * Reports settings that have no effect. If an environment variable sets both `command` and `url`, `command` takes
 * precedence.
 */
function unused({ command, url }: Readonly<Record<string, unknown>>): readonly Unused[] {
  const because = command !== null ? "command" : url !== null ? "url" : null;
  if (because === null) return [];
  const others = because === "command" ? ["url", "headers"] : ["args", "env", "cwd"];
  const expected =
    because === "command"
      ? "this key only with url and without command"
      : "this key only with command and without url";
  return others.map((field) => ({
    field,
    because,
    expected: field === "url" ? "either command or url" : expected,
  }));
}

const server = group(
  "An MCP server: either a command to start or a URL to connect to.",
  {
    command,
    args: list("With `command`: command-line arguments.", text),
    env: environment(
      "With `command`: environment variables.",
      "With `command`: an environment variable. Its value is never shown.",
    ),
    cwd: optional(
      "With `command`: the working directory. Defaults to the directory that Skein was started in.",
      filePath,
      "the directory that Skein was started in",
    ),
    url,
    headers,
    timeoutSeconds: setting("Timeout for a tool call, in seconds.", wholeNumber(1, 86_400), 60),
    approval: setting("Whether every call to the server's tools needs a person's approval.", flag, false),
  },
  { unused, oneOf: ["command", "url"] },
);

export const mcpServers = table(
  "MCP servers whose tools are available to agents. You choose the name of each server.",
  keysLike(
    "<server>",
    "a name: up to 64 letters, digits, underscores and hyphens, starting with a letter or digit",
    "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$",
  ),
  server,
);
