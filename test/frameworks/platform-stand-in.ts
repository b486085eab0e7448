import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { LoopbackServer } from "../support/held-model.ts";
import { soon } from "../support/soon.ts";

/** A call to a platform's API. */
export interface PlatformCall {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** Closes the connection without a response. */
  readonly isBroken?: boolean;
}

export interface PlatformRequest {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** A chat platform's HTTP API on loopback. It checks the token of each call, and records the calls. */
export abstract class PlatformStandIn {
  readonly calls: PlatformCall[] = [];
  #server: LoopbackServer | null = null;
  /** Responses to the next calls of a method, in place of the usual ones. */
  readonly #failures = new Map<string, Reply[]>();

  abstract get settings(): Readonly<Record<string, string>>;
  protected abstract answer(request: PlatformRequest): Reply;

  async start(): Promise<void> {
    this.#server = await LoopbackServer.listen((request, response) => void this.#serve(request, response));
  }

  get url(): string {
    return this.#server?.url ?? "";
  }

  close(): void {
    this.#server?.close();
  }

  /** The calls of these methods, in order. */
  of(...methods: readonly string[]): readonly PlatformCall[] {
    return this.calls.filter(({ method }) => methods.includes(method));
  }

  /** Resolves to the call of this method with this index, once it has been received. */
  async call(method: string, index = 0): Promise<PlatformCall> {
    await soon(() => this.of(method).length).toBeGreaterThan(index);
    return this.of(method)[index] as PlatformCall;
  }

  failNext(method: string, ...replies: readonly Reply[]): void {
    this.#failures.set(method, [...(this.#failures.get(method) ?? []), ...replies]);
  }

  /** Records a call and returns its result, unless the test asked for a failure. */
  protected record(method: string, params: PlatformCall["params"], result: () => Reply): Reply {
    const failure = this.#failures.get(method)?.shift();
    if (failure !== undefined) return failure;
    this.calls.push({ method, params });
    return result();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url: path = "/", headers } = request;
    const given = { path, headers, body: await buffer(request) };
    const { status = 200, headers: more, body, isBroken } = this.answer(given);
    if (isBroken === true) return void response.destroy();
    const isFile = body instanceof Buffer;
    const type = isFile ? "application/octet-stream" : "application/json";
    response.writeHead(status, { "content-type": type, ...more });
    response.end(isFile ? body : JSON.stringify(body));
  }
}
