import type { CallToolResult } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { mcpOutput } from "./server.ts";

test.each<[string, CallToolResult, unknown]>([
  ["text", { content: [{ type: "text", text: "a" }] }, [{ type: "text", text: "a" }]],
  [
    "an image",
    { content: [{ type: "image", data: "aGk=", mimeType: "image/png" }] },
    [{ type: "image", data: "aGk=", mimeType: "image/png" }],
  ],
  [
    "audio",
    { content: [{ type: "audio", data: "aGkh", mimeType: "audio/wav" }] },
    [{ type: "text", text: "[audio, audio/wav, about 3 bytes, not shown]" }],
  ],
  [
    "a link",
    { content: [{ type: "resource_link", name: "notes", uri: "file:///n", description: "Notes" }] },
    [{ type: "text", text: "[notes](file:///n): Notes" }],
  ],
  [
    "a text resource",
    { content: [{ type: "resource", resource: { uri: "file:///n", text: "hello" } }] },
    [{ type: "text", text: "file:///n:\nhello" }],
  ],
  [
    "an image resource",
    { content: [{ type: "resource", resource: { uri: "file:///n", blob: "aGk=", mimeType: "image/gif" } }] },
    [{ type: "image", data: "aGk=", mimeType: "image/gif" }],
  ],
  [
    "another resource",
    { content: [{ type: "resource", resource: { uri: "file:///n", blob: "aGkh" } }] },
    [{ type: "text", text: "[file:///n, unknown type, about 3 bytes, not shown]" }],
  ],
  [
    "structured content without other content",
    { content: [], structuredContent: { a: 1 } },
    [{ type: "text", text: '{"a":1}' }],
  ],
  [
    "structured content with other content",
    { content: [{ type: "text", text: "a" }], structuredContent: { a: 1 } },
    [{ type: "text", text: "a" }],
  ],
  ["nothing", { content: [] }, [{ type: "text", text: "(no output)" }]],
  ["an empty text", { content: [{ type: "text", text: "" }] }, [{ type: "text", text: "(no output)" }]],
])("%s", (_, result, content) => {
  expect(mcpOutput(result)).toEqual({ content });
});

test("an error stays an error", () => {
  expect(mcpOutput({ content: [], isError: true })).toMatchObject({ isError: true });
});
