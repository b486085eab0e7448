import { describe, expect, test } from "vitest";
import type { Method } from "./method.ts";
import { methodNames, methodTable } from "./method-table.ts";
import { openApiDocument } from "./openapi.ts";

interface Operation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, { readonly description?: string; readonly $ref?: string }>>;
}
interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

const document = JSON.parse(JSON.stringify(openApiDocument({ version: "1.2.3" }))) as Document;
const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)];

describe("the OpenAPI document", () => {
  test("has every method except those of a socket, and the other paths", () => {
    const overHttp = methodNames.filter((name) => (methodTable[name] as Method).isSocketOnly !== true);
    const others = ["/events", "/healthz", "/readyz", "/metrics", "/channels/{id}/inbound", "/link"];
    expect(Object.keys(document.paths)).toEqual([...overHttp.map((name) => `/rpc/${name}`), ...others]);
  });

  test("references resolve, and every named schema is referenced", () => {
    for (const [, group = "", name = ""] of refs) expect(document.components[group]).toHaveProperty(name);
    const named = new Set(refs.filter(([, group]) => group === "schemas").map(([, , name]) => name));
    expect([...named].toSorted()).toEqual(Object.keys(document.components.schemas ?? {}).toSorted());
  });

  test("every operation has its own ID and described responses", () => {
    const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { responses } of operations) {
      for (const [status, each] of Object.entries(responses)) {
        expect(status).toMatch(/^[2-5]\d\d$/);
        expect(each.description ?? each.$ref).toBeDefined();
      }
    }
  });

  test("its operations are the pinned ones", async () => {
    const lines = Object.entries(document.paths).map(([path, at]) => `${Object.keys(at).join()} ${path}`);
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../../test/golden/protocol/operations.txt");
  });
});
