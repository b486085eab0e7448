import type { Command } from "commander";
import { parseDuration } from "../config/settings/amounts.ts";
import { SkeinError } from "../core/errors.ts";
import { userSegment } from "../core/path-segment.ts";
import { present } from "../core/present.ts";
import type { TokenScope } from "../gateway/auth/principal.ts";
import { tokenScopes } from "../gateway/auth/principal.ts";
import type { TokenRow } from "../protocol/tokens.ts";
import type { CommandContext } from "./command.ts";
import { action, examples } from "./command.ts";
import { withCalls } from "./connection/with-calls.ts";
import { printAnswer } from "./output/answer.ts";
import { formatAge, formatTime } from "./output/format.ts";
import type { GlobalOptions, Invocation } from "./output/invocation.ts";
import { commandLine } from "./output/invocation.ts";
import type { Column } from "./output/table.ts";
import { printList } from "./output/table.ts";

export function registerToken(token: Command, context: CommandContext): void {
  token.addHelpText(
    "after",
    examples("skein token create --label ci --scope read,write", "skein token list"),
  );
  token
    .command("create")
    .description("Create a token and print it. It cannot be shown again.")
    .option("--label <label>", "a label that describes what the token is for")
    .option(
      "--scope <scopes>",
      "what the token allows, separated by commas: read, write, tools, admin (default: read)",
    )
    .option("--for <user>", "the user whose sessions the token can access (default: the unnamed user)")
    .option(
      "--all-users",
      "give access to every user's sessions and to gateway administration; requires the admin scope",
    )
    .option(
      "--expires <span>",
      "how long the token is valid, such as 24h or 30d (default: until it is revoked)",
    )
    .addHelpText(
      "after",
      examples(
        "skein token create --label ci --scope read,write --expires 30d",
        "skein token create --for alice --scope read,write,tools",
        "skein token create --label ops --scope read,write,tools,admin --all-users --json",
      ),
    )
    .action(action(context, createToken));
  token
    .command("list", { isDefault: true })
    .description("List tokens, newest first, including expired and revoked ones.")
    .addHelpText("after", examples("skein token list", "skein token list --json"))
    .action(action(context, listTokens));
  token
    .command("revoke")
    .description("Revoke a token and every token created with it.")
    .argument("<tokenId>", "the token's ID, as printed by `token list`")
    .addHelpText("after", examples("skein token revoke a7a7a7a7a7a7"))
    .action(action(context, revokeToken));
}

interface TokenOptions {
  readonly label?: string;
  readonly scope?: string;
  readonly for?: string;
  readonly allUsers?: boolean;
  readonly expires?: string;
}

async function createToken(cli: Invocation<TokenOptions>): Promise<void> {
  checkWhose(cli.options);
  const { scope, expires, label, for: userId, allUsers } = cli.options;
  const scopes = scopesOf(scope ?? "read");
  const expiresAt = expires === undefined ? null : cli.terminal.now() + spanOf(expires);
  await withCalls(cli, async ({ calls }) => {
    const params = { scopes, ...present({ label, userId, allUsers, expiresAt }) };
    const made = await calls.call("tokens.create", params);
    printAnswer(cli, made, [
      "Created a token. It is shown only once and grants these rights to anyone who has it:",
      ["token", made.token],
      ["id", made.tokenId],
      ["scopes", made.scopes.join(", ")],
      ["for", whoseOf(made)],
      ["until", made.expiresAt === undefined ? "it is revoked" : formatTime(made.expiresAt)],
    ]);
  });
}

async function listTokens(cli: Invocation): Promise<void> {
  await withCalls(cli, async ({ calls }) => {
    const payload = await calls.call("tokens.list", {});
    const empty = `there are no tokens yet; create one: ${commandLine(cli, "token", "create")}`;
    printList(cli, payload, { columns: columns(cli.terminal.now()), rows: payload.tokens, empty });
  });
}

async function revokeToken(cli: Invocation, tokenId: string): Promise<void> {
  await withCalls(cli, async ({ calls }) => {
    const done = await calls.call("tokens.revoke", { tokenId });
    const shown = done.label === undefined ? tokenId : `${tokenId} (${done.label})`;
    const lines = [`revoked the token ${shown} and every token created with it`];
    if (done.isUnsaved === true)
      lines.push(
        "the disk is not writable, so the revocation exists only in the running gateway's memory; do not kill the gateway until it can write again",
      );
    printAnswer(cli, done, lines);
  });
}

/** `--user` alone would silently create a token for the unnamed user. */
function checkWhose({ user, for: userId, allUsers }: GlobalOptions & TokenOptions): void {
  if (userId !== undefined) userSegment(userId);
  if (userId !== undefined && allUsers === true) {
    const problem = "A token is for one user or for all users";
    throw new SkeinError("invalid_arguments", {
      problem,
      advice: "Use either --for or --all-users, not both",
    });
  }
  if (user === undefined || user === userId) return;
  throw new SkeinError("invalid_arguments", {
    problem: "--user does not set a token's user",
    advice: "Use --for <user> instead",
  });
}

function scopesOf(text: string): TokenScope[] {
  const names = text.split(",").map((each) => each.trim().toLowerCase());
  const unknown = names.find((name) => !tokenScopes.some((scope) => scope === name));
  if (unknown === undefined) return tokenScopes.filter((scope) => names.includes(scope));
  throw new SkeinError("invalid_arguments", {
    problem: `"${unknown}" is not a token scope`,
    advice: `Use ${tokenScopes.join(", ")}, separated by commas`,
  });
}

function spanOf(text: string): number {
  const span = parseDuration(text);
  if (span !== null) return Math.round(span);
  throw new SkeinError("invalid_arguments", {
    problem: `"${text}" is not a duration`,
    advice: "Use a duration such as 90m, 24h or 30d",
  });
}

function whoseOf({ userId, allUsers }: TokenRow): string {
  return allUsers ? "every user" : (userId ?? "the unnamed user");
}

function columns(now: number): Column<TokenRow>[] {
  return [
    { title: "TOKEN", text: ({ tokenId }) => tokenId, whole: true },
    { title: "LABEL", text: ({ label }) => label ?? "", least: 8 },
    { title: "STATE", text: (row) => stateOf(row, now) },
    { title: "SCOPES", text: ({ scopes }) => scopes.join(","), least: 10 },
    { title: "FOR", text: whoseOf, least: 8 },
    { title: "CREATED BY", text: ({ createdBy }) => createdBy ?? "", spare: 2 },
    {
      title: "UNTIL",
      text: ({ expiresAt }) => (expiresAt === undefined ? "" : formatTime(expiresAt)),
      spare: 1,
    },
    { title: "USED", text: ({ lastUsedAt }) => ageOf(lastUsedAt, now), align: "right", spare: 3 },
    { title: "AGE", text: ({ createdAt }) => ageOf(createdAt, now), align: "right", spare: 4 },
  ];
}

function stateOf({ revokedAt, expiresAt }: TokenRow, now: number): string {
  if (revokedAt !== undefined) return "revoked";
  return expiresAt !== undefined && expiresAt <= now ? "expired" : "valid";
}

function ageOf(time: number | undefined, now: number): string {
  return time === undefined ? "" : formatAge(now - time);
}
