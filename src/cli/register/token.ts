import type { Command } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples } from "./options.ts";

/** What an id looks like, for examples. */
const tokenId = "a7a7a7a7a7a7";

export function registerToken(program: Command, terminal: Terminal): void {
  const token = program
    .command("token")
    .description("Who may come in to a gateway on this folder.")
    .addHelpText("after", examples("skein token create --label ci --scope read,write", "skein token list"));
  registerCreate(token, terminal);
  token
    .command("list", { isDefault: true })
    .description("List tokens, the last made first, those that are over too.")
    .addHelpText("after", examples("skein token list", "skein token list --json"))
    .action(async (_, command: Command) => {
      const { listTokens } = await import("../commands/token.ts");
      await listTokens(terminal, command.optsWithGlobals());
    });
  token
    .command("revoke")
    .description("End a token at once, and every token that it made.")
    .argument("<tokenId>", "the token, as `token list` prints it")
    .addHelpText("after", examples(`skein token revoke ${tokenId}`))
    .action(async (id: string, _, command: Command) => {
      const { revokeToken } = await import("../commands/token.ts");
      await revokeToken(terminal, id, command.optsWithGlobals());
    });
}

function registerCreate(token: Command, terminal: Terminal): void {
  token
    .command("create")
    .description("Make a token, and show it this once.")
    .option("--label <label>", "what it is for, as lists show it")
    .option(
      "--scope <scopes>",
      "what it may do: read, write, tools, admin, with commas between (default: read)",
    )
    .option("--for <user>", "whose sessions it sees (default: the unnamed user's)")
    .option("--all-users", "it sees everybody's, and may look after the gateway; needs the scope admin")
    .option("--expires <span>", "how long it is good, such as 24h or 30d (default: until it is revoked)")
    .addHelpText(
      "after",
      examples(
        "skein token create --label ci --scope read,write --expires 30d",
        "skein token create --for alice --scope read,write,tools",
        "skein token create --label ops --scope read,write,tools,admin --all-users --json",
      ),
    )
    .action(async (_, command: Command) => {
      const { createToken } = await import("../commands/token.ts");
      await createToken(terminal, command.optsWithGlobals());
    });
}
