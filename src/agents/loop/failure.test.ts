import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { apiError } from "../../../test/support/scripted-model.ts";
import { failureOf, maxRetryAfterMs, retryAfterOf, retryDelay, StreamFailure } from "./failure.ts";
import { loopServices } from "./services.ts";

const named = (name: string, more: object = {}) => Object.assign(new Error("oh"), { name, ...more });

describe("model failures", () => {
  test.each<[string, unknown, string, string]>([
    ["429", apiError(429, "Slow down"), "transient", "rate_limited"],
    ["500", apiError(500, "Oops"), "transient", "server_error"],
    ["503", apiError(503, "Busy"), "transient", "overloaded"],
    ["529", apiError(529, "Overloaded"), "transient", "overloaded"],
    ["408", apiError(408, "Late"), "transient", "server_error"],
    ["an answer that cannot be read", apiError(200, "Invalid JSON response"), "transient", "garbled"],
    ["401", apiError(401, "No"), "auth", "model_auth"],
    ["403", apiError(403, "No"), "auth", "model_auth"],
    ["Google's bad key", apiError(400, "API key not valid."), "auth", "model_auth"],
    ["no key", named("AI_LoadAPIKeyError"), "auth", "model_auth"],
    ["404", apiError(404, "model: claude-x"), "not_found", "model_not_found"],
    ["Mistral's unknown model", apiError(400, "Invalid model: x"), "not_found", "model_not_found"],
    ["an unknown model", named("AI_NoSuchModelError"), "not_found", "model_not_found"],
    ["400", apiError(400, "messages: roles must alternate"), "other", "model_failed"],
    [
      "an empty account",
      apiError(429, "You exceeded", { responseBody: "insufficient_quota" }),
      "other",
      "model_failed",
    ],
    ["too long", apiError(400, "prompt is too long: 9 tokens"), "overflow", "context_overflow"],
    ["too large", apiError(413, "Request too large"), "overflow", "context_overflow"],
    [
      "too long, reported in a stream",
      { type: "x", message: "maximum context length" },
      "overflow",
      "context_overflow",
    ],
    ["no connection", named("AI_APICallError", { isRetryable: true }), "transient", "network"],
    ["fetch", new TypeError("fetch failed"), "transient", "network"],
    ["a closed connection", new TypeError("terminated"), "transient", "network"],
    [
      "a socket, deep inside",
      named("Error", { cause: named("E", { code: "ECONNRESET" }) }),
      "transient",
      "network",
    ],
    ["undici", named("Error", { code: "UND_ERR_SOCKET" }), "transient", "network"],
    ["bad JSON in a stream", named("AI_JSONParseError"), "transient", "garbled"],
    ["an unknown event", named("AI_TypeValidationError"), "transient", "garbled"],
    [
      "Anthropic's error in a stream",
      { type: "overloaded_error", message: "Overloaded" },
      "transient",
      "overloaded",
    ],
    [
      "an error that is wrapped again",
      { error: { code: "rate_limit_exceeded", message: "Slow" } },
      "transient",
      "rate_limited",
    ],
    ["a text", "Internal server_error", "transient", "server_error"],
    ["an interrupted stream", new StreamFailure("cut", "c"), "transient", "cut"],
    ["a stall", new StreamFailure("stalled", "s"), "transient", "stalled"],
    ["a filter", new StreamFailure("filtered", "f"), "other", "filtered"],
    ["an internal error", new RangeError("internal"), "other", "model_failed"],
  ])("[LOP8] [OVF2] [OVF4] %s", (_, error, kind, code) => {
    expect(failureOf(error, loopServices({ clock: { now: () => 0 } }))).toMatchObject({ kind, code });
  });

  test("[OVF4] has the provider's text, shortened, and its retry delay", () => {
    const headers = { responseHeaders: { "Retry-After": "3" } };
    expect(
      failureOf(apiError(429, "Slow down", headers), loopServices({ clock: { now: () => 0 } })),
    ).toMatchObject({
      text: "Slow down",
      retryAfterMs: 3000,
    });
    expect(
      failureOf(apiError(400, "x".repeat(9000)), loopServices({ clock: { now: () => 0 } })).text,
    ).toHaveLength(2000);
    expect(failureOf({ error: { message: "Inner" } }, loopServices({ clock: { now: () => 0 } })).text).toBe(
      "Inner",
    );
  });

  test("[LOP8] any thrown value gives a failure", () => {
    fc.assert(
      fc.property(fc.anything(), (thrown) => {
        const { kind, text } = failureOf(thrown, loopServices({ clock: { now: () => 0 } }));
        return typeof kind === "string" && typeof text === "string";
      }),
    );
  });
});

const now = Date.UTC(2026, 0, 1, 12);
const date = (ms: number) => new Date(now + ms).toUTCString();

describe("the retry delay", () => {
  test.each<[string, unknown, number | null]>([
    ["seconds", { "retry-after": "7" }, 7000],
    ["fractions of seconds", { "Retry-After": " 0.5 " }, 500],
    ["milliseconds, which take precedence", { "retry-after-ms": "250", "retry-after": "1" }, 250],
    ["a date", { "retry-after": date(9000) }, 9000],
    ["a date that has passed", { "retry-after": date(-9000) }, 0],
    ["a negative number", { "retry-after": "-5" }, null],
    ["a word", { "retry-after": "soon" }, null],
    ["a number with an exponent", { "retry-after": "1e9" }, null],
    ["invalid milliseconds", { "retry-after-ms": "x", "retry-after": "2" }, 2000],
    ["nothing", {}, null],
    ["no headers", undefined, null],
    ["something else", { "retry-after": 7 }, null],
  ])("[LOP8] %s", (_, headers, expected) => {
    expect(retryAfterOf(headers, now)).toBe(expected);
  });

  test("[LOP8] is exponential with full jitter; the server's delay takes precedence; both have an upper limit", () => {
    expect([1, 2, 3, 4, 5, 6, 20].map((retry) => retryDelay(retry, null, () => 0.999999))).toEqual([
      1000, 2000, 4000, 8000, 16_000, 30_000, 30_000,
    ]);
    expect(retryDelay(3, null, () => 0)).toBe(0);
    expect(retryDelay(1, 5000, () => 0)).toBe(5000);
    expect(retryDelay(1, 9_999_999, () => 0)).toBe(maxRetryAfterMs);
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2000 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (retry, chance) => {
          const delay = retryDelay(retry, null, () => chance);
          return delay >= 0 && delay <= 30_000;
        },
      ),
    );
  });
});
