import { createHmac } from "node:crypto";
import type { RequestOptions } from "node:http";
import http from "node:http";
import https from "node:https";
import { syncBuiltinESMExports } from "node:module";
import type { PlatformCall, PlatformRequest } from "./platform-stand-in.ts";
import { PlatformStandIn } from "./platform-stand-in.ts";

const botToken = "xoxb-stand-in-0123456789";
const signingSecret = "0123456789abcdef0123456789abcdef";
export const slackAuthorization = `Bearer ${botToken}`;
export const slackBot = "U0BOT";

const filesPath = "/files/";
const people: Readonly<Record<string, string>> = { U0ANN: "Ann", U0BOB: "Bob" };

interface SlackMessage {
  readonly text: string;
  readonly user?: string;
  readonly channel?: string;
  readonly ts?: string;
  readonly thread?: string;
  readonly botId?: string;
  readonly files?: readonly object[];
}

/** A request for a file, on any host. */
interface SlackDownload {
  readonly host: string;
  readonly authorization: string | undefined;
}

/** Slack's Web API, and the requests that Slack sends. */
export class SlackStandIn extends PlatformStandIn {
  readonly downloads: SlackDownload[] = [];
  /** What a file's address, without the protocol, responds with. */
  readonly files = new Map<string, Buffer | "broken" | { readonly location: string }>();
  #messages = 0;

  get settings() {
    return { botToken, signingSecret, apiUrl: `${this.url}/api/` };
  }

  protected answer({ path, headers, body }: PlatformRequest) {
    if (path.startsWith(filesPath)) return this.#download(path.slice(filesPath.length), headers);
    const method = path.replace("/api/", "");
    const form = Object.fromEntries(new URLSearchParams(body.toString()));
    const { token: _, ...params } = form;
    if (headers.authorization !== `Bearer ${botToken}` && form.token !== botToken)
      return { body: { ok: false, error: "invalid_auth" } };
    return this.record(method, params, () => ({ body: { ok: true, ...this.#result(method, params) } }));
  }

  #download(address: string, { authorization }: PlatformRequest["headers"]) {
    const host = address.slice(0, address.indexOf("/"));
    this.downloads.push({ host, authorization });
    const file = this.files.get(address);
    if (file === undefined) return { status: 404, body: {} };
    if (file === "broken") return { isBroken: true, body: {} };
    return file instanceof Buffer ? { body: file } : { status: 302, headers: file, body: {} };
  }

  /** Stands in for all hosts that files are downloaded from over HTTPS. Returns a function that undoes this. */
  serveFiles(): () => void {
    const { request: real } = https;
    const send = ({ host, pathname }: URL, { headers, signal }: RequestOptions, done: () => void) =>
      http.request(`${this.url}${filesPath}${host}${pathname}`, { headers, signal } as RequestOptions, done);
    https.request = send as typeof real;
    syncBuiltinESMExports();
    return () => {
      https.request = real;
      syncBuiltinESMExports();
    };
  }

  #result(method: string, params: PlatformCall["params"]): object {
    switch (method) {
      case "auth.test":
        return { user_id: slackBot, user: "skein", bot_id: "B0BOT", team_id: "T0" };
      case "users.info":
        return { user: { id: params.user, real_name: people[String(params.user)], profile: {} } };
      case "chat.postMessage":
        this.#messages += 1;
        return { channel: params.channel, ts: `1900000000.${String(this.#messages).padStart(6, "0")}` };
      case "chat.update":
        return { channel: params.channel, ts: params.ts };
      default:
        return {};
    }
  }

  /** What a message event of Slack contains. */
  event({
    text,
    user = "U0ANN",
    channel = "C0DESK",
    ts = "1800000000.000100",
    thread,
    botId,
    files,
  }: SlackMessage) {
    return {
      type: "event_callback",
      team_id: "T0",
      event_id: `Ev${ts}`,
      event: {
        type: "message",
        channel_type: channel.startsWith("D") ? "im" : "channel",
        ...{ channel, user, text, ts, team: "T0" },
        ...(thread === undefined ? {} : { thread_ts: thread }),
        ...(botId === undefined ? {} : { bot_id: botId }),
        ...(files === undefined ? {} : { subtype: "file_share", files }),
      },
    };
  }

  /** What Slack sends when a person presses a button of a message. */
  press(message: PlatformCall, label: string, user: string) {
    const { channel, thread_ts } = message.params;
    const [, actions] = JSON.parse(String(message.params.blocks)) as [
      object,
      { elements: readonly SlackButton[] },
    ];
    const button = actions.elements.find(({ text }) => text.text === label);
    const payload = {
      type: "block_actions",
      ...{ user: { id: user, username: user, name: people[user] }, channel: { id: channel } },
      message: { ts: "1900000000.000001", thread_ts },
      container: { type: "message", channel_id: channel, message_ts: "1900000000.000001", thread_ts },
      actions: [{ type: "button", action_id: button?.action_id, value: button?.value }],
    };
    return new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
  }

  /** Sends a request as Slack does: signed with the signing secret, over the time and the body. */
  async send(
    url: string,
    body: object | string,
    { secret = signingSecret, retry = 0 } = {},
  ): Promise<Response> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const timestamp = String(Math.floor(Date.now() / 1000));
    const signature = createHmac("sha256", secret).update(`v0:${timestamp}:${text}`).digest("hex");
    return fetch(url, {
      method: "POST",
      headers: {
        "content-type": typeof body === "string" ? "application/x-www-form-urlencoded" : "application/json",
        "x-slack-request-timestamp": timestamp,
        "x-slack-signature": `v0=${signature}`,
        ...(retry === 0
          ? {}
          : { "x-slack-retry-num": String(retry), "x-slack-retry-reason": "http_timeout" }),
      },
      body: text,
    });
  }
}

interface SlackButton {
  readonly text: { readonly text: string };
  readonly action_id: string;
  readonly value: string;
}
