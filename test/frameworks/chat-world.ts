import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { HeldModel } from "../support/held-model.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";
import { GitHubStandIn } from "./github-stand-in.ts";
import { SlackStandIn } from "./slack-stand-in.ts";
import { TelegramStandIn } from "./telegram-stand-in.ts";
import { WhatsAppStandIn } from "./whatsapp-stand-in.ts";

const modules = join(import.meta.dirname, "node_modules");

export interface WorldOptions {
  /** More settings of the channels, in YAML's flow style. */
  readonly channel?: string;
  /** The tools whose calls need approval. */
  readonly ask?: readonly string[];
  /** The versions of the installed packages, without their code. `null` if none is installed. */
  readonly packages?: Readonly<Record<string, string>> | null;
}

/**
 * A gateway with a channel to each platform, `team`, `tg`, `wa` and `gh`, and a model that answers when the test wants it
 * to.
 */
export class ChatWorld {
  readonly slack = new SlackStandIn();
  readonly telegram = new TelegramStandIn();
  readonly whatsapp = new WhatsAppStandIn();
  readonly github = new GitHubStandIn();
  readonly #options: WorldOptions;
  readonly #folder: TemporaryFolder = temporaryFolder("skein-chat-");
  #model: HeldModel | null = null;
  #gateway: WholeGateway | null = null;

  private constructor(options: WorldOptions) {
    this.#options = options;
  }

  static async open(options: WorldOptions = {}): Promise<ChatWorld> {
    const world = new ChatWorld(options);
    await Promise.all([
      world.slack.start(),
      world.telegram.start(),
      world.whatsapp.start(),
      world.github.start(),
    ]);
    world.#model = await HeldModel.start();
    world.#install();
    await world.startGateway();
    return world;
  }

  get model(): HeldModel {
    return this.#model as HeldModel;
  }

  get gateway(): WholeGateway {
    return this.#gateway as WholeGateway;
  }

  get folder(): string {
    return this.#folder.path;
  }

  urlOf(channel: string): string {
    return `${this.gateway.url}/channels/${channel}/inbound`;
  }

  /** Sends what Slack sends, and returns the status of the response. */
  async slackSends(body: object | string, options = {}): Promise<number> {
    return (await this.slack.send(this.urlOf("team"), body, options)).status;
  }

  async telegramSends(update: object, secret?: string): Promise<number> {
    return (await this.telegram.send(this.urlOf("tg"), update, secret)).status;
  }

  async whatsappSends(event: object, secret?: string): Promise<number> {
    return (await this.whatsapp.send(this.urlOf("wa"), event, secret)).status;
  }

  async githubSends(event: object, secret?: string): Promise<number> {
    return (await this.github.send(this.urlOf("gh"), event, secret)).status;
  }

  async startGateway(): Promise<void> {
    const { channel = "", ask = [] } = this.#options;
    const rows = [
      ["team", "slack", this.slack.settings],
      ["tg", "telegram", this.telegram.settings],
      ["wa", "whatsapp", this.whatsapp.settings],
      ["gh", "github", this.github.settings],
    ].map(([id, adapter, settings]) => {
      const more = channel === "" ? "" : `, ${channel}`;
      return `  ${id}: { type: chat-sdk, adapter: ${adapter}, settings: ${JSON.stringify(settings)}, editIntervalMs: 100${more} }\n`;
    });
    const agents = `agents: { main: { tools: { ask: ${JSON.stringify(ask)} } } }\n`;
    const text = `${this.model.config}${agents}channels:\n${rows.join("")}`;
    this.#gateway = await wholeGateway({ config: text, folder: this.#folder });
  }

  async restart(): Promise<void> {
    await this.gateway.stop();
    await this.startGateway();
  }

  /** The keys of all sessions. */
  async keys(): Promise<readonly string[]> {
    const { body } = await this.gateway.rpc("sessions.list", { allUsers: true });
    return (body as { sessions: readonly { key: string }[] }).sessions.map(({ key }) => key);
  }

  async openApprovals(): Promise<number> {
    const { body } = await this.gateway.rpc("approvals.list", { allUsers: true });
    return (body as { approvals: readonly unknown[] }).approvals.length;
  }

  /** What the gateway has logged. */
  log(): string {
    return readFileSync(join(this.folder, "log"), "utf8");
  }

  /** The packages are installed next to the configuration, as a user would install them. */
  #install(): void {
    const { packages } = this.#options;
    const folder = join(this.folder, "node_modules");
    if (packages === undefined) symlinkSync(modules, folder);
    for (const [name, version] of Object.entries(packages ?? {})) {
      mkdirSync(join(folder, name), { recursive: true });
      writeFileSync(join(folder, name, "package.json"), JSON.stringify({ name, version }));
    }
  }

  async close(): Promise<void> {
    await this.#gateway?.close();
    this.#model?.close();
    this.slack.close();
    this.telegram.close();
    this.whatsapp.close();
    this.github.close();
    this.#folder.remove();
  }
}
