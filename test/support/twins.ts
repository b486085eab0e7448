import { expect } from "vitest";
import type { Twin, TwinApi, TwinRequest } from "../../src/entry-testing.ts";
import { checkRequest } from "../../src/entry-testing.ts";

/** Requests for twins and the expected results. */

export const anthropicKeys = { "x-api-key": "any", "anthropic-version": "2023-06-01" };
export const googleKeys = { "x-goog-api-key": "any" };

/** A valid request to Anthropic, apart from the given fields. */
export function messagesRequest(
  body: object = {},
  headers: TwinRequest["headers"] = anthropicKeys,
): TwinRequest {
  const usual = {
    model: "claude-sonnet-4-5",
    max_tokens: 2000,
    messages: [{ role: "user", content: "Hello" }],
  };
  return { method: "POST", path: "/v1/messages", headers, body: { ...usual, ...body } };
}

/** A valid request to Google, apart from the given fields. */
export function generateRequest(body: object = {}, model = "gemini-2.5-flash"): TwinRequest {
  const contents = [{ role: "user", parts: [{ text: "Hello" }] }];
  const path = `/v1beta/models/${model}:generateContent`;
  return { method: "POST", path, headers: googleKeys, body: { contents, ...body } };
}

/** The unchanged request, sent over the wire. */
export function send(twin: Twin, request: TwinRequest, signal?: AbortSignal): Promise<Response> {
  const { method, path, headers, body } = request;
  const given = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return fetch(new URL(path, twin.url), {
    method,
    headers: { "content-type": "application/json", ...Object.fromEntries(given) },
    ...(method === "GET" ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
}

export interface Expected {
  readonly rule: string;
  readonly says: string;
  readonly status?: number;
}

/** The twin refuses the request over the wire, and so does the in-process check, with the same text. */
export async function expectRefused(twin: Twin, request: TwinRequest, expected: Expected): Promise<void> {
  const response = await send(twin, request);
  const body = (await response.json()) as { error: { message: string } };
  expect(twin.requests.at(-1)?.refusal?.rule).toBe(expected.rule);
  expect(body.error.message).toContain(expected.says);
  expect(response.status).toBe(expected.status ?? 400);
  expect(checkRequest(twin.api, request)).toMatchObject({
    status: response.status,
    rule: expected.rule,
    body,
  });
}

export async function expectTaken(twin: Twin, request: TwinRequest): Promise<void> {
  const response = await send(twin, request);
  expect(await response.text()).not.toContain('"error"');
  expect(response.status).toBe(200);
  expect(twin.requests.at(-1)?.refusal).toBeNull();
  expect(checkRequest(twin.api, request)).toBeNull();
}

/** The part of an image file that contains its type and size. */
export function imageData(kind: "png" | "jpeg" | "gif" | "webp", width: number, height: number): string {
  return makeImage[kind](width, height).toString("base64");
}

const makeImage = {
  png: (width: number, height: number) => {
    const bytes = Buffer.alloc(33);
    bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13]);
    bytes.write("IHDR", 12, "latin1");
    bytes.writeUInt32BE(width, 16);
    bytes.writeUInt32BE(height, 20);
    return bytes;
  },
  jpeg: (width: number, height: number) => {
    const bytes = Buffer.alloc(40);
    bytes.set([0xff, 0xd8, 0xff, 0xe0, 0, 8, 0x4a, 0x46, 0x49, 0x46, 0, 0, 0xff, 0xc0, 0, 17, 8]);
    bytes.writeUInt16BE(height, 17);
    bytes.writeUInt16BE(width, 19);
    return bytes;
  },
  gif: (width: number, height: number) => {
    const bytes = Buffer.alloc(20);
    bytes.write("GIF89a", 0, "latin1");
    bytes.writeUInt16LE(width, 6);
    bytes.writeUInt16LE(height, 8);
    return bytes;
  },
  webp: (width: number, height: number) => {
    const bytes = Buffer.alloc(30);
    bytes.write("RIFF", 0, "latin1");
    bytes.write("WEBPVP8X", 8, "latin1");
    bytes.writeUIntLE(width - 1, 24, 3);
    bytes.writeUIntLE(height - 1, 27, 3);
    return bytes;
  },
};

export const everyApi: readonly TwinApi[] = ["anthropic-messages", "google-generative-ai"];
