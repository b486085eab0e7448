// A chat platform in miniature: rooms with threads, signed webhooks in both directions. It stands in for Slack or Teams.
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface Post {
  readonly room: string;
  readonly from: string;
  readonly text: string;
}

interface OutboundBody {
  readonly to: string;
  readonly text: string;
}

export class ChatPlatform {
  readonly #secret: string;
  readonly #onPost: (post: Post) => void;
  readonly #server = createServer(async (request, response) => {
    const body = await text(request);
    const {
      "x-skein-timestamp": time = "",
      "x-skein-message-id": id = "",
      "x-skein-signature": signature = "",
    } = request.headers;
    if (!this.#isSigned(`${time}.${id}.${body}`, String(signature)))
      return void response.writeHead(401).end();
    const { to, text: said } = JSON.parse(body) as OutboundBody;
    this.#onPost({ room: to, from: "desk", text: said });
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ messageId: randomUUID() }));
  });

  constructor(secret: string, onPost: (post: Post) => void) {
    this.#secret = secret;
    this.#onPost = onPost;
  }

  /** Returns the address that receives the desk's messages. */
  async listen(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/messages`;
  }

  /** A person writes in a room, and the platform sends the signed event to the desk's webhook. */
  async write(
    webhook: (request: Request) => Promise<Response>,
    { room, from, text: said }: Post,
  ): Promise<void> {
    this.#onPost({ room, from, text: said });
    const body = JSON.stringify({ text: said, peer: from.toLowerCase(), peerName: from, group: room });
    const [time, id] = [String(Math.floor(Date.now() / 1000)), randomUUID()];
    const headers = {
      "content-type": "application/json",
      "x-skein-timestamp": time,
      "x-skein-message-id": id,
      "x-skein-signature": this.#sign(`${time}.${id}.${body}`),
    };
    const answer = await webhook(
      new Request("http://desk/channels/team/inbound", { method: "POST", headers, body }),
    );
    if (!answer.ok) throw new Error(`The desk answered ${answer.status}: ${await answer.text()}`);
  }

  async close(): Promise<void> {
    this.#server.close();
    await once(this.#server, "close");
  }

  #sign(signed: string): string {
    return `sha256=${createHmac("sha256", this.#secret).update(signed).digest("hex")}`;
  }

  #isSigned(signed: string, signature: string): boolean {
    const expected = this.#sign(signed);
    return (
      signature.length === expected.length && timingSafeEqual(Buffer.from(signature), Buffer.from(expected))
    );
  }
}
