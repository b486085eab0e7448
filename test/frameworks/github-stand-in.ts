import { createHmac } from "node:crypto";
import type { PlatformCall, PlatformRequest } from "./platform-stand-in.ts";
import { PlatformStandIn } from "./platform-stand-in.ts";

const token = "github-stand-in-0123456789";
const webhookSecret = "0123456789abcdef0123456789abcdef";
const userOf = (id: number, login: string) => ({ id, login, type: "User", avatar_url: "" });
const bot = userOf(9, "skein-helper");
const at = "2027-01-15T08:00:00Z";

/** The comments of GitHub's REST API, and the events that GitHub sends. */
export class GitHubStandIn extends PlatformStandIn {
  get settings() {
    return { webhookSecret, userName: bot.login, token, apiUrl: this.url };
  }

  protected answer({ path, headers, body }: PlatformRequest) {
    if (!headers.authorization?.endsWith(token)) return { status: 401, body: {} };
    if (path === "/user" || path === "/app") return this.record(path, {}, () => ({ body: bot }));
    const params = JSON.parse(body.toString() || "{}") as PlatformCall["params"];
    const comment = { id: 700, user: bot, created_at: at, updated_at: at, html_url: "", ...params };
    return this.record(path, params, () => ({
      status: path.includes("/issues/5/") ? 201 : 200,
      body: comment,
    }));
  }

  /** What GitHub sends for a comment of Ann's on an issue. */
  event(text: string, id = 501) {
    const user = userOf(5, "ann");
    const repository = { id: 1, name: "loom", full_name: "acme/loom", owner: userOf(2, "acme") };
    const comment = { id, body: text, user, created_at: at, updated_at: at, html_url: "" };
    return { action: "created", comment, issue: { number: 5, title: "Broken" }, repository, sender: user };
  }

  /** Sends a request as GitHub does: signed with the webhook secret. */
  send(url: string, event: object, secret = webhookSecret): Promise<Response> {
    const body = JSON.stringify(event);
    const signature = createHmac("sha256", secret).update(body).digest("hex");
    const headers = {
      "content-type": "application/json",
      "x-github-event": "issue_comment",
      "x-hub-signature-256": `sha256=${signature}`,
    };
    return fetch(url, { method: "POST", headers, body });
  }
}
