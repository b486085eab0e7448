import type { Command } from "commander";
import { lookAtAcp } from "../app/acp.ts";
import type { ChatPackagesReport } from "../app/check-chat-packages.ts";
import { checkChatPackages } from "../app/check-chat-packages.ts";
import { configuredFileBoundary } from "../app/files.ts";
import type { FolderStore } from "../app/folder.ts";
import { holdsSessions, openFolder, refuseDatabaseFolder } from "../app/folder.ts";
import { checkMcpServers } from "../app/mcp.ts";
import { checkDatabase } from "../app/open-store.ts";
import { CallError } from "../client/contract.ts";
import { effectiveConfigText, setConfigText, sourceText } from "../config/effective.ts";
import type { LoadedConfig } from "../config/load.ts";
import { checkConfig } from "../config/load.ts";
import { problemText } from "../config/problems.ts";
import { databaseNameOf } from "../config/sections/store.ts";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { tokenSchema } from "../gateway/auth/token-table.ts";
import { findRunning } from "../gateway/running-file.ts";
import type {
  AcpAgentsPayload,
  ChatChannelPayload,
  DoctorPayload,
  FindingPayload,
  McpServerPayload,
} from "../protocol/command-payloads.ts";
import type { MaintenanceDecisionPayload } from "../protocol/upkeep.ts";
import { findTrashed, resolveSession } from "../sessions/find-session.ts";
import { decisionPayload, explainedPayload, runMaintenance } from "../sessions/maintain.ts";
import type { SessionRecord, Store, TrashedSession } from "../store/contract.ts";
import type { CheckFinding } from "../store/files/check.ts";
import type { Recovery } from "../store/files/recover.ts";
import type { CommandContext } from "./command.ts";
import { action, examples } from "./command.ts";
import { fetchGatewayConfig } from "./connection/connect-to-gateway.ts";
import { loadOptions, processFolder } from "./connection/with-folder.ts";
import { acpFindings, channelFindings, mcpFindings, printDoctor, warning } from "./doctor-report.ts";
import { checkPort } from "./gateway/port.ts";
import { printPayload } from "./output/answer.ts";
import { CommandFailed } from "./output/errors.ts";
import type { Invocation } from "./output/invocation.ts";
import { withProgress } from "./output/progress.ts";
import type { Terminal } from "./output/terminal.ts";

export function registerDoctor(command: Command, context: CommandContext): void {
  command
    .option("--fix", "fix problems that can be fixed automatically")
    .option("--all", "show every setting, including defaults")
    .option("--explain <ref>", "explain how each session.maintenance rule affects one session")
    .addHelpText(
      "after",
      examples("skein doctor", "skein doctor --fix", "skein doctor --all", "skein doctor --explain trip"),
    )
    .action(action(context, doctorCommand));
}

interface DoctorOptions {
  readonly fix?: boolean;
  /** `true` to show every setting, including defaults. */
  readonly all?: boolean;
  readonly explain?: string;
}

const neededNode = 24;
/** The maximum time for an ACP agent to respond, in seconds. `acp.startTimeoutSeconds` can lower this limit. */
const longestProbe = 30;

/** Fails if any error remains. */
async function doctorCommand(cli: Invocation<DoctorOptions>): Promise<void> {
  const { loaded, problems } = await checkConfig(loadOptions(cli));
  const root = loaded.config.store.path;
  const source = loaded.sources.get("store") ?? { from: "default" as const };
  const exists = holdsSessions(root);
  if (cli.options.fix === true) refuseBesideGateway(root);
  const database = databaseNameOf(loaded.config);
  const inside =
    database !== null ? await lookAtDatabase(loaded, database) : await lookInside(cli, loaded, exists);
  const waiting = await askGateway(cli, root);
  const acp = await askAgents(cli.terminal, loaded, waiting.settings);
  const mcp = await askMcpServers(cli.terminal, loaded, waiting.settings);
  const channels = checkChatPackages(loaded).map(channelPayload);
  const version = process.versions.node;
  const node = { version, needed: `${neededNode} or newer`, ok: Number.parseInt(version, 10) >= neededNode };
  const isBroken = inside.findings.some(({ severity, fixed }) => severity === "error" && !fixed);
  const payload: DoctorPayload = {
    ok: node.ok && problems.length === 0 && !isBroken,
    node,
    folder: { path: root, from: sourceText(source), exists },
    ...present({ database }),
    findings: [
      ...inside.findings,
      ...(await checkPort(loaded.config)),
      ...waiting.findings,
      ...acpFindings(acp.agents),
      ...mcpFindings(mcp),
      ...channelFindings(channels),
    ],
    configuration: {
      ...(loaded.file === null ? {} : { file: loaded.file }),
      problems: problems.map(problemText),
      effective: effectiveConfigText(loaded),
      ...(waiting.settings.length === 0 ? {} : { waiting: [...waiting.settings] }),
    },
    acp,
    mcp,
    channels,
    maintenance: {
      mode: loaded.config.session.maintenance.mode,
      decisions: [...inside.decisions],
      ...present({ explained: inside.explained }),
    },
  };
  printPayload(cli, payload, () => printDoctor(cli, payload, setConfigText(loaded)));
  if (!payload.ok) throw new CommandFailed();
}

/** Returns the commands that an operator must accept before the running gateway starts them. */
async function askGateway(
  cli: Invocation,
  root: string,
): Promise<{ readonly settings: readonly string[]; readonly findings: readonly FindingPayload[] }> {
  try {
    const { waiting: settings = [] } = (await fetchGatewayConfig(cli, root)) ?? {};
    const what =
      "The running gateway has not applied this command, because the command is new or has changed";
    const remedy = "Check it, then run `skein reload` or restart the gateway";
    return { settings, findings: settings.map((setting) => warning("configuration", setting, what, remedy)) };
  } catch (error) {
    if (!(error instanceof CallError || error instanceof SkeinError)) throw error;
    const what = `The running gateway did not return its configuration: ${error.message}`;
    const remedy = "Check that it is running and responding, and that SKEIN_TOKEN, if set, is an admin token";
    return { settings: [], findings: [warning("configuration", root, what, remedy)] };
  }
}

/** Starts each ACP agent briefly, except those that an operator has not accepted yet. */
function askAgents(
  terminal: Terminal,
  loaded: LoadedConfig,
  waiting: readonly string[],
): Promise<AcpAgentsPayload> {
  const { env, cwd } = terminal;
  const { acp } = loaded.config;
  const agents = Object.entries(acp.agents).filter(([name]) => !waiting.includes(`acp.agents.${name}`));
  const config = { ...loaded.config, acp: { ...acp, agents: Object.fromEntries(agents) } };
  const timeoutMs = Math.min(config.acp.startTimeoutSeconds, longestProbe) * 1000;
  return withProgress(terminal, "Checking ACP agents", (onProgress) =>
    lookAtAcp(config, { env, cwd, timeoutMs, onProgress }),
  );
}

/** Connects to each MCP server briefly, except those that an operator has not accepted yet. */
function askMcpServers(
  terminal: Terminal,
  loaded: LoadedConfig,
  waiting: readonly string[],
): Promise<McpServerPayload[]> {
  const servers = Object.entries(loaded.config.mcpServers);
  const checked = servers.filter(([name]) => !waiting.includes(`mcpServers.${name}`));
  const config = { ...loaded.config, mcpServers: Object.fromEntries(checked) };
  return withProgress(terminal, "Checking MCP servers", (onProgress) =>
    checkMcpServers({ ...loaded, config }, { env: terminal.env, onProgress }),
  );
}

interface Inside {
  readonly findings: readonly FindingPayload[];
  readonly decisions: readonly MaintenanceDecisionPayload[];
  readonly explained?: DoctorPayload["maintenance"]["explained"];
}

/** Connects to the database. Lists no maintenance decisions, because only the gateways can determine what is due. */
async function lookAtDatabase({ config }: LoadedConfig, name: string): Promise<Inside> {
  return { findings: await findingsFrom(name, () => checkDatabase(config)), decisions: [] };
}

/** Returns a check's error as a finding. */
async function findingsFrom(place: string, check: () => unknown): Promise<FindingPayload[]> {
  try {
    await check();
    return [];
  } catch (error) {
    if (error instanceof SkeinError) return [notOpened(place, error)];
    throw error;
  }
}

async function lookInside(
  cli: Invocation<DoctorOptions>,
  loaded: LoadedConfig,
  exists: boolean,
): Promise<Inside> {
  const { terminal, options } = cli;
  const root = loaded.config.store.path;
  if (!exists) return { findings: await findingsFrom(root, () => refuseDatabaseFolder(root)), decisions: [] };
  const fix = options.fix === true;
  const findings: FindingPayload[] = [];
  let isOpening = true;
  const report = (found: Recovery) => void (isOpening && findings.push(findingOf(found)));
  const files = configuredFileBoundary(loaded, processFolder(terminal));
  const store = await openFolder({
    root,
    report,
    cwdFor: (place) => files.defaultCwd(place),
    ...(fix ? { fix: { schemas: [tokenSchema] } } : {}),
  }).catch((error: unknown) => {
    if (!(error instanceof SkeinError)) throw error;
    return error;
  });
  if (store instanceof SkeinError) return { findings: [...findings, notOpened(root, store)], decisions: [] };
  isOpening = false; // From here on, the check reports its own findings.
  try {
    const found = await withProgress(terminal, "Checking", (update) => store.upkeep.check({ fix }, update));
    findings.push(...found);
    if (found.some(({ area, severity }) => area === "databases" && severity === "error"))
      return { findings, decisions: [] };
    findings.push(...(await waitingWork(store, loaded, options.user)));
    const users = options.user === undefined ? store.upkeep.users() : [options.user];
    const rules = loaded.config.session.maintenance;
    const work = { store, users, rules, now: terminal.now(), runs: store.runs };
    const session =
      options.explain === undefined ? null : await findExplained(store, loaded, cli, options.explain);
    const { decisions, explained } = await runMaintenance(work, {
      dryRun: true,
      ...present({ explainUid: session?.uid }),
    });
    return { findings, decisions: decisions.map(decisionPayload), ...explainedPayload(session, explained) };
  } catch (error) {
    if (!(error instanceof SkeinError) || error.code !== "store_damaged") throw error;
    return { findings: [...findings, notOpened(root, error)], decisions: [] };
  } finally {
    await store.close().catch(ignoreDamage);
  }
}

/** Finds the session to explain, which can be in the trash. */
async function findExplained(
  { sessions }: Pick<Store, "sessions">,
  { config }: LoadedConfig,
  { options }: Invocation,
  name: string,
): Promise<SessionRecord | TrashedSession> {
  const scope = present({ userId: options.user, agentId: options.agent });
  const asker = { agentId: options.agent ?? "main", scope: config.session.scope };
  const found =
    (await resolveSession(sessions, scope, asker, name, { prefix: true })) ??
    findTrashed(await sessions.trashed(scope), name, asker, { prefix: true });
  if (found !== null) return found;
  const advice = "See skein sessions ls, and skein sessions ls --trash";
  throw new SkeinError("not_found", { what: "Session", name, advice });
}

/** The maximum number of runs and messages to list. The rest are only counted. */
const mostListed = 20;

/**
 * Returns findings about runs and messages that are waiting for a process with the right app or channel, and about runs
 * whose process no longer exists.
 */
async function waitingWork(
  { runs }: FolderStore,
  { config }: LoadedConfig,
  user: string | undefined,
): Promise<FindingPayload[]> {
  const whose = user === undefined ? [] : [user];
  const waiting = await runs.list({ waitsForApp: true, limit: 1000 }, ...whose);
  const active = await runs.list({ states: ["running", "waiting"], limit: 1000 }, ...whose);
  const waits = await runs.waitsOf(active.map(({ runId }) => runId));
  const left = active.filter(({ runId }) => waits.get(runId)?.isOwnerGone === true);
  const queued = await runs.outbox.list({ states: ["queued"], limit: 1000 }, ...whose);
  const known = new Set([...Object.keys(config.channels), "cli", "console", "session"]);
  const unsent = queued.filter(({ target, app }) => app !== null || !known.has(target.channel));
  return [
    ...waiting.slice(0, mostListed).map(({ runId, app, session }) => {
      const what = `Run ${runId} in ${session.key} is waiting for the app ${app}`;
      return warning("runs", session.key, what, `Start ${app}, or run \`skein runs release ${runId}\``);
    }),
    ...left.slice(0, mostListed).map(({ runId, app, session }) => {
      const what = `Run ${runId} in ${session.key} is unfinished, but its process no longer exists`;
      const remedy = `${app === null ? "Run `skein start`" : `Start ${app}`}, which continues it, or run \`skein runs abort ${runId}\``;
      return warning("runs", session.key, what, remedy);
    }),
    ...unsent.slice(0, mostListed).map(({ outboxId, app, session, target: { channel } }) => {
      const provider = app === null ? "a process that provides" : `the app ${app}, which provides`;
      const what = `Message ${outboxId} is waiting for ${provider} the channel ${channel}`;
      return warning("runs", session.key, what, `Start it, or run \`skein outbox drop ${outboxId}\``);
    }),
    ...moreFinding("runs that are waiting for an app", waiting.length, "skein runs ls --state queued"),
    ...moreFinding(
      "runs whose process no longer exists",
      left.length,
      "skein runs ls --state running,waiting",
    ),
    ...moreFinding(
      "messages that are waiting for a channel",
      unsent.length,
      "skein outbox ls --state queued",
    ),
  ];
}

function moreFinding(what: string, count: number, command: string): FindingPayload[] {
  if (count <= mostListed) return [];
  return [warning("runs", "work.db", `${count - mostListed} more ${what}`, `List them with \`${command}\``)];
}

/** A running gateway writes to the databases and files that a repair replaces. */
function refuseBesideGateway(root: string): void {
  const running = findRunning(root);
  if (running === null) return;
  throw new SkeinError("conflict", {
    problem: `The gateway at ${running.url} (process ${running.pid}) is using ${root}`,
    advice: "Nothing was changed. Stop the gateway, then run `skein doctor --fix` again",
  });
}

/** Ignores damage, which has already been reported. */
function ignoreDamage(error: unknown): void {
  if (!(error instanceof SkeinError) || error.code !== "store_damaged") throw error;
}

function findingOf({ kind, file, note }: Recovery): CheckFinding {
  const what = note.charAt(0).toUpperCase() + note.slice(1);
  const isDone = kind !== "not_taken_in" && kind !== "not_indexed";
  const remedy = isDone
    ? "This was done when the folder was opened"
    : "It was left unchanged; inspect the file";
  const area = ["set_aside", "rebuilt", "salvaged"].includes(kind) ? "databases" : "logs";
  const severity = kind === "salvaged" ? "error" : "warning";
  return { area, severity, file, what, remedy, fixable: isDone, fixed: isDone };
}

function channelPayload({ error, packages, ...about }: ChatPackagesReport): ChatChannelPayload {
  const problem = error === null ? {} : { problem: problemOf(error), remedy: error.remedy };
  return { ...about, packages: [...packages], ...problem };
}

/** Returns an error's message without its remedy. */
function problemOf(error: SkeinError): string {
  return error.message.slice(0, -error.remedy.length).trim();
}

function notOpened(root: string, error: SkeinError): CheckFinding {
  const what = problemOf(error);
  const rest = { remedy: error.remedy, fixable: false, fixed: false };
  return { area: "databases", severity: "error", file: root, what, ...rest };
}
