import { describe, expect, test } from "vitest";
import { acpError } from "./serve-stdio.ts";

describe("errors sent to an editor", () => {
  test.each([
    [Object.assign(new Error("gone"), { code: "not_found" }), -32002, "not_found"],
    [Object.assign(new Error("bad"), { code: "invalid_arguments" }), -32602, "invalid_arguments"],
    [Object.assign(new Error("no"), { code: "forbidden" }), -32603, "forbidden"],
    [Object.assign(new Error("bad"), { code: "invalid_key" }), -32602, "invalid_key"],
    [Object.assign(new Error("bad"), { code: "invalid_request", reason: null }), -32602, "invalid_request"],
    [
      Object.assign(new Error("bad"), { code: "invalid_request", reason: "invalid_key" }),
      -32602,
      "invalid_key",
    ],
    [Object.assign(new Error("no"), { code: "conflict", reason: "fenced" }), -32603, "fenced"],
    [new Error("oh"), -32603, "internal"],
    ["oh", -32603, "internal"],
  ])("[AAG9] %s has an ACP error number and Skein's code", (error, number, code) => {
    expect(acpError(error)).toMatchObject({ code: number, data: { code } });
  });
});
