import { describe, expect, test } from "vitest";
import { checkParams } from "./check-params.ts";
import type { MethodName } from "./method-table.ts";
import { methodTable } from "./method-table.ts";

const problemsOf = (name: MethodName, given: unknown) => {
  const checked = checkParams(methodTable[name].params, given);
  return "problems" in checked ? checked.problems.map(({ path, problem }) => `${path}: ${problem}`) : [];
};

describe("checking params", () => {
  test.each([
    ["sessions.resolve", {}, [": needs exactly one of key, sessionId, label"]],
    ["sessions.resolve", { key: "a", label: "b" }, [": needs exactly one of key, sessionId, label"]],
    ["agent", { message: "x", idempotencyKey: "k" }, [": needs sessionKey or agentId"]],
    ["sessions.list", { limit: 0.5, zz: 1 }, ["zz: is not a known field", "limit: must be integer"]],
    ["sessions.patch", { key: "a", model: 3 }, ["model: must be string, or null"]],
    ["sessions.patch", { key: "a", sendPolicy: "x" }, ['sendPolicy: must be one of "allow", "deny"']],
    ["sessions.import", { files: [{ name: "a", content: 3 }] }, ["files[0].content: must be string"]],
    ["runs.get", {}, ["runId: is required"]],
    [
      "models.list",
      JSON.parse('{"__proto__": 1, "a/b": 2}'),
      ["__proto__: is not a known field", "a/b: is not a known field"],
    ],
  ] as const)("[WLK4] %s %o", (name, given, expected) => {
    expect(problemsOf(name, given)).toEqual(expected);
  });

  test("a list that is too long is refused without reading its items", () => {
    let looked = 0;
    const keys = Array.from({ length: 65 }, () => "a");
    Object.defineProperty(keys, 0, { get: () => ++looked });
    expect(problemsOf("sessions.preview", { keys })).toEqual(["keys: must not have more than 64 items"]);
    expect(looked).toBe(0);
    expect(problemsOf("sessions.preview", { keys: keys.slice(1) })).toEqual([]);
  });

  test("of an object with too many properties, only the first ones are read", () => {
    let read = 0;
    const names = Array.from({ length: 400_000 }, (_, at) => `k${at}`);
    const count = <T>(value: T): T => {
      read += 1;
      return value;
    };
    const crowded = new Proxy(Object.fromEntries(names.map((name) => [name, 0])), {
      get: (object, name) => count(Reflect.get(object, name)),
      has: (object, name) => count(Reflect.has(object, name)),
      getOwnPropertyDescriptor: (object, name) => count(Reflect.getOwnPropertyDescriptor(object, name)),
    });
    expect(problemsOf("sessions.list", crowded)).toHaveLength(20);
    expect(problemsOf("sessions.list", { search: crowded })).toEqual(["search: must be string"]);
    expect(problemsOf("sessions.list", { sessions: crowded })).toEqual(["sessions: is not a known field"]);
    expect(read).toBeLessThan(2000);
    // Only the names of the fields are counted.
    const invoked = { name: "sessions_list", arguments: Object.fromEntries(names.map((name) => [name, 0])) };
    expect(problemsOf("tools.invoke", invoked)).toEqual([
      "arguments: must not have more than 256 properties",
    ]);
  });

  test("[WLK4] many mistakes are reported up to a limit, and no nesting depth is dangerous", () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`f${index}`, index]));
    expect(problemsOf("sessions.list", many)).toHaveLength(20);
    let deep: unknown = 1;
    for (let index = 0; index < 100_000; index++) deep = [deep];
    expect(problemsOf("tools.invoke", { sessionKey: "a", name: "x", arguments: { deep } })).toEqual([]);
  });

  test("[WLK4] defaults are filled in, and the input stays unchanged", () => {
    const given = Object.freeze({ key: "a" });
    expect(checkParams(methodTable["sessions.archive"].params, given)).toEqual({
      params: { key: "a", archived: true },
    });
    expect(checkParams(methodTable["sessions.list"].params, undefined)).toEqual({ params: { limit: 100 } });
  });
});
