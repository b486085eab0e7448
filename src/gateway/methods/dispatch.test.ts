import { describe, expect, test } from "vitest";
import { SkeinError } from "../../core/errors.ts";
import type { Principal } from "../auth/principal.ts";
import type { Call, Handlers } from "./dispatch.ts";
import { Dispatch, RequestRefusedError } from "./dispatch.ts";

const never = new AbortController().signal;
const one: Principal = { tokenId: "t", name: "a", scopes: ["read", "write"], user: "ann", expiresAt: null };
const all: Principal = { ...one, scopes: ["read", "write", "admin"], user: "*" };

function world(act: (params: unknown, call: Call) => unknown = () => ({})) {
  const reported: unknown[] = [];
  const table = new Proxy({}, { get: () => async (params: unknown, call: Call) => act(params, call) });
  const dispatch = new Dispatch({
    handlers: () => table as Handlers,
    newErrorId: () => "e-1",
    report: (...what) => reported.push(what),
  });
  return { dispatch, reported };
}

describe("dispatching a call", () => {
  test("a handler gets checked params with defaults, and the principal of the call", async () => {
    const seen: unknown[] = [];
    const { dispatch } = world((params, { userId, isAdmin, principal, signal }) => {
      seen.push([params, userId, isAdmin, principal.tokenId, signal === never]);
      return { done: true };
    });
    expect(await dispatch.answer(one, "sessions.preview", { keys: ["main"] }, never)).toEqual({
      ok: true,
      payload: { done: true },
    });
    await dispatch.answer(all, "sessions.get", { key: "main", userId: "bob" }, never);
    await dispatch.answer(all, "sessions.get", { key: "main" }, never);
    expect(seen).toMatchObject([
      [{ keys: ["main"] }, "ann", false, "t", true],
      [{ key: "main", userId: "bob" }, "bob", true, "t", true],
      [{ key: "main" }, null, true, "t", true],
    ]);
  });

  test.each([
    ["an unknown method", one, "sessions.none", {}, "not_found"],
    ["the name of an object method", one, "hasOwnProperty", {}, "not_found"],
    ["a missing scope", one, "sessions.delete", { key: 7 }, "forbidden"],
    ["a token of one user", { ...all, user: "ann" }, "tokens.list", {}, "forbidden"],
    ["another user's ID", one, "sessions.get", { key: "main", userId: "bob" }, "forbidden"],
    ["invalid params", one, "sessions.get", { key: 7 }, "invalid_request"],
    [
      "an admin-only option",
      one,
      "agent",
      { sessionKey: "main", message: "m", idempotencyKey: "i", extraSystemPrompt: "x" },
      "forbidden",
    ],
    ["a method that only sockets have", one, "sessions.subscribe", {}, "invalid_request"],
  ] as const)("%s is refused without calling a handler", async (_, principal, name, params, code) => {
    let asked = 0;
    const { dispatch, reported } = world(() => ++asked);
    expect(await dispatch.answer(principal as Principal, name, params, never)).toMatchObject({
      ok: false,
      error: { code },
    });
    expect([asked, reported]).toEqual([0, []]);
  });

  const failing = (error: unknown) =>
    world(() => {
      throw error;
    });

  test("an error of a handler reaches the client as far as the client may see it, and an unexpected error is reported", async () => {
    const foreseen = failing(new SkeinError("not_found", { what: "Session", name: "x", advice: "Look" }));
    const told = await foreseen.dispatch.answer(one, "sessions.get", { key: "x" }, never);
    expect([told, foreseen.reported]).toMatchObject([{ error: { code: "not_found" } }, []]);
    const error = new Error("secret");
    const other = failing(error);
    expect(await other.dispatch.answer(one, "sessions.get", { key: "x" }, never)).toMatchObject({
      error: { code: "internal", details: { errorId: "e-1" } },
    });
    expect(other.reported).toEqual([["e-1", "sessions.get", error]]);
    const wire = { code: "conflict", message: "As it is." } as const;
    const refused = failing(new RequestRefusedError(wire));
    expect(await refused.dispatch.answer(one, "sessions.get", { key: "x" }, never)).toEqual({
      ok: false,
      error: wire,
    });
  });

  test("a call ended by its signal fails with the signal's reason; another error is unchanged", async () => {
    const reason = new SkeinError("unavailable", { problem: "It stops", advice: "Wait" });
    const ask = (error: unknown) => {
      const controller = new AbortController();
      const answer = failing(error).dispatch.answer(one, "agents.list", {}, controller.signal);
      controller.abort(reason);
      return answer;
    };
    const over = { error: { code: "unavailable", message: "It stops. Wait." } };
    expect(await ask(new DOMException("over", "AbortError"))).toMatchObject(over);
    expect(await ask(reason)).toMatchObject(over);
    expect(await ask(new Error("other"))).toMatchObject({ error: { code: "internal" } });
  });
});
