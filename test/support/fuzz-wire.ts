import type { Socket } from "node:net";
import { connect } from "node:net";
import fc from "fast-check";
import { WebSocket } from "ws";
import { wireErrors } from "../../src/protocol/errors.ts";
import { closeCodes } from "../../src/protocol/frames.ts";
import { anyJson } from "./fuzz-params.ts";
import { connectParams } from "./gateway-server.ts";

/** Requests and frames that are almost valid, with the expected responses. */

const codes: Readonly<Record<string, { readonly status: number }>> = wireErrors;
export const listedCloses: readonly number[] = Object.values(closeCodes).map(({ code }) => code);

/** Returns why this is not an error that a client can handle, or `null` if it is. */
export function refusalProblem(error: unknown, status?: number): string | null {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  const text = JSON.stringify(error)?.slice(0, 300);
  if (typeof code !== "string" || !Object.hasOwn(codes, code)) return `no code that is known: ${text}`;
  if (code === "internal") return `internal: ${text}`;
  if (typeof message !== "string" || !/\S.*[.?!]$/s.test(message)) return `no sentence: ${text}`;
  if (status !== undefined && codes[code]?.status !== status) return `${status} with ${text}`;
  return null;
}

/** Returns everything received over a connection until the other side closes it or a timeout expires. */
export function exchangeRaw(port: number, bytes: Uint8Array, patienceMs: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const chunks: Buffer[] = [];
    const leave = setTimeout(() => socket.end(), patienceMs);
    socket.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      // Neither an event stream nor a socket ends on its own.
      if (/^HTTP\/1.1 (101|200)/.test(String(chunks[0]))) socket.end();
    });
    socket.on("error", () => {
      // A reset discards the unread part of the response, so the response cannot be checked.
      chunks.length = 0;
      socket.destroy();
    });
    socket.on("close", () => {
      clearTimeout(leave);
      resolve(Buffer.concat(chunks).toString("latin1"));
    });
    socket.write(bytes);
  });
}

/**
 * Returns why the received data is invalid, or `null` if it is valid. Receiving no data is valid if no request was
 * complete.
 */
export function rawProblem(text: string): string | null {
  const heads = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  const odd = heads.find((status) => status >= 500 || status === 417);
  if (odd !== undefined) return `${odd}: ${text.slice(0, 600)}`;
  if (text !== "" && !text.startsWith("HTTP/1.1 ")) return `no HTTP: ${text.slice(0, 200)}`;
  for (const [, body] of text.matchAll(/\r\n\r\n(\{"error":.*?\})(?=HTTP\/1\.1|$)/gs)) {
    const { error } = JSON.parse(body ?? "") as { readonly error: unknown };
    const problem = refusalProblem(error);
    if (problem !== null) return problem;
  }
  const isTold = heads.every((status) => status < 400) || text.includes('"message":') || /^HEAD /.test(text);
  return isTold ? null : `a refusal without a word: ${text.slice(0, 600)}`;
}

/** Changes, removes or inserts a few bytes. */
export function mutated(bytes: fc.Arbitrary<Uint8Array>): fc.Arbitrary<Uint8Array> {
  const change = fc.tuple(fc.constantFrom("flip", "drop", "put", "cut"), fc.nat(), fc.nat({ max: 255 }));
  return fc.tuple(bytes, fc.array(change, { maxLength: 3 })).map(([whole, changes]) =>
    changes.reduce((given, [kind, place, byte]) => {
      const at = given.length === 0 ? 0 : place % given.length;
      if (kind === "flip") return given.map((each, index) => (index === at ? each ^ (byte | 1) : each));
      if (kind === "drop") return Uint8Array.from([...given.slice(0, at), ...given.slice(at + 1)]);
      if (kind === "put") return Uint8Array.from([...given.slice(0, at), byte, ...given.slice(at)]);
      return given.slice(0, at);
    }, whole),
  );
}

export type Sent =
  | { readonly kind: "text" | "parts"; readonly text: string }
  | { readonly kind: "bytes" | "raw"; readonly bytes: Uint8Array }
  | { readonly kind: "ping" };

const ids = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom("a", "b", "c", "\ud800", "x".repeat(128)) },
  { weight: 1, arbitrary: fc.constantFrom("", "x".repeat(129)) },
  { weight: 1, arbitrary: anyJson },
);
const methods = fc.constantFrom(
  "agents.list",
  "sessions.list",
  "sessions.subscribe",
  "sessions.subscribe",
  "sessions.unsubscribe",
  "connect",
  "nothing",
  "__proto__",
  "toString",
  "",
);
const plain = fc.record(
  { type: fc.constant("req"), id: ids, method: methods, params: fc.oneof(fc.constant({}), anyJson) },
  { requiredKeys: ["type", "id", "method"] },
);
const text = fc.oneof(
  { weight: 12, arbitrary: plain.map((frame) => JSON.stringify(frame)) },
  { weight: 1, arbitrary: anyJson.map((value) => JSON.stringify(value)) },
  {
    weight: 1,
    arbitrary: fc.tuple(plain, fc.nat({ max: 60 })).map(([frame, at]) => JSON.stringify(frame).slice(0, at)),
  },
  { weight: 1, arbitrary: fc.constant(`{"type":"req","id":"a","id":"d","method":"agents.list"}`) },
  {
    weight: 1,
    arbitrary: fc.constant(
      `{"type":"req","id":"n","method":"nothing","params":${"[".repeat(1e5)}${"]".repeat(1e5)}}`,
    ),
  },
);

/** The frames that a client sends over a socket, in order. */
export const sentFrames: fc.Arbitrary<readonly Sent[]> = fc.array(
  fc.oneof(
    { weight: 20, arbitrary: text.map((each): Sent => ({ kind: "text", text: each })) },
    { weight: 4, arbitrary: text.map((each): Sent => ({ kind: "parts", text: each })) },
    { weight: 3, arbitrary: fc.constant<Sent>({ kind: "ping" }) },
    {
      weight: 1,
      arbitrary: fc.uint8Array({ maxLength: 20 }).map((bytes): Sent => ({ kind: "bytes", bytes })),
    },
    {
      weight: 1,
      arbitrary: fc
        .uint8Array({ minLength: 2, maxLength: 20 })
        .map((bytes): Sent => ({ kind: "raw", bytes })),
    },
  ),
  { minLength: 1, maxLength: 12 },
);

/**
 * Returns the ID with which a text can be answered, or `null` if it cannot be answered. The only long texts are nested
 * too deeply to be parsed.
 */
export function idOf(sent: string): string | null {
  if (sent.length > 64 * 1024) return null;
  try {
    const { id } = (JSON.parse(sent) ?? {}) as { readonly id?: unknown };
    return typeof id === "string" && id.length >= 1 && id.length <= 128 ? id : null;
  } catch {
    return null;
  }
}

export interface SocketAnswers {
  /** Responses by ID, in order of arrival. */
  readonly answers: readonly { readonly id: string; readonly error?: unknown }[];
  /** `null` if the socket was still open and everything had been answered. */
  readonly closed: number | null;
}

/** Sends everything over a new socket and collects the responses until all have arrived or the socket is closed. */
export async function exchangeFrames(
  url: string,
  token: string,
  frames: readonly Sent[],
): Promise<SocketAnswers> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/ws`);
  const answers: { id: string; error?: unknown }[] = [];
  const expected = frames.filter((each) => "text" in each && idOf(each.text) !== null).length;
  const isRaw = frames.some(({ kind }) => kind === "raw");
  const all = Promise.withResolvers<number | null>();
  const leave = setTimeout(() => all.resolve(null), isRaw ? 300 : 120_000);
  socket.on("error", () => undefined);
  socket.on("close", (code) => all.resolve(code));
  socket.on("open", () =>
    send(socket, {
      kind: "text",
      text: JSON.stringify({ type: "req", id: "hello", method: "connect", params: connectParams(token) }),
    }),
  );
  // Waits for a pong after the last response, because a second response would have come before it. Pings among the
  // frames have their own pongs, which prove nothing about later frames.
  const last = "behind the last";
  socket.on("message", (data) => {
    const { type, id, error } = JSON.parse(String(data)) as { type: string; id: string; error?: unknown };
    if (type !== "res") return;
    if (id === "hello") for (const each of frames) send(socket, each);
    else if (answers.push({ id, error }) === expected) socket.ping(last);
    if (id === "hello" && expected === 0) socket.ping(last);
  });
  socket.on("pong", (data) => void (String(data) === last && all.resolve(null)));
  const closed = await all.promise;
  clearTimeout(leave);
  socket.terminate();
  return { answers, closed };
}

function send(socket: WebSocket, sent: Sent): void {
  if (socket.readyState !== socket.OPEN) return;
  if (sent.kind === "ping") return void socket.ping("x");
  if ("bytes" in sent) return void sendBytes(socket, sent.bytes, sent.kind === "raw");
  if (sent.kind === "text") return void socket.send(sent.text);
  // Split by bytes. Half a character is complete again at the other end, but half a surrogate pair is not.
  const bytes = Buffer.from(sent.text);
  const half = Math.floor(bytes.length / 2);
  socket.send(bytes.subarray(0, half), { binary: false, fin: false });
  socket.send(bytes.subarray(half), { binary: false, fin: true });
}

/** Sent as a frame, or as raw bytes that bypass the library. */
function sendBytes(socket: WebSocket, bytes: Uint8Array, isRaw: boolean): void {
  if (isRaw) (socket as unknown as { readonly _socket: Socket })._socket.write(bytes);
  else socket.send(bytes, { binary: true });
}
