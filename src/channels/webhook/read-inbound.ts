import { parseJson } from "../../core/parse-json.ts";
import { isBase64 } from "../../core/text.ts";
import type { InboundMessage } from "../contract.ts";
import { messageIdPattern } from "./signature.ts";

/** What is wrong with a field of a message. */
export interface FieldProblem {
  /** For example `images[0].data`; empty: the whole. */
  readonly path: string;
  readonly expected: string;
}

type Fields = Readonly<Record<string, unknown>>;

const optionalTexts = ["peerName", "group", "threadId", "accountId", "agentId"] as const;
const knownFields = ["text", "peer", "messageId", "images", ...optionalTexts];

/** The message that a body holds, or all that is wrong with it. The id of the header goes before that of the body. */
export async function readInbound(
  channel: string,
  body: Uint8Array,
  headerId: string | null,
): Promise<{ readonly message: InboundMessage } | { readonly problems: readonly FieldProblem[] }> {
  const value = await parsed(body);
  if (!isFields(value)) return { problems: [{ path: "", expected: "a JSON object, in UTF-8" }] };
  const messageId = headerId ?? value.messageId;
  const problems = [...textProblems(value), ...idProblems(messageId), ...imageProblems(value.images)];
  for (const path of Object.keys(value).filter((key) => !knownFields.includes(key))) {
    problems.push({ path, expected: `nothing; known are ${knownFields.join(", ")}` });
  }
  if (problems.length > 0) return { problems };
  const { messageId: _, ...fields } = value;
  return { message: { text: "", ...fields, channel, messageId } as unknown as InboundMessage };
}

function textProblems(value: Fields): FieldProblem[] {
  const hasImages = Array.isArray(value.images) && value.images.length > 0;
  const isText = typeof value.text === "string" && value.text !== "";
  const textIsFine = isText || (hasImages && (value.text === undefined || value.text === ""));
  return [
    ...(textIsFine ? [] : [{ path: "text", expected: "text that is not empty, unless there are images" }]),
    ...(isName(value.peer) ? [] : [{ path: "peer", expected: "text that is not empty" }]),
    ...optionalTexts
      .filter((path) => value[path] !== undefined && !isName(value[path]))
      .map((path) => ({ path, expected: "text that is not empty, or nothing" })),
  ];
}

function idProblems(messageId: unknown): FieldProblem[] {
  if (typeof messageId === "string" && messageIdPattern.test(messageId)) return [];
  const expected = "1 to 200 printable ASCII characters without spaces, quotes, braces and backslashes";
  return [{ path: "messageId", expected }];
}

function imageProblems(images: unknown): FieldProblem[] {
  if (images === undefined) return [];
  if (!Array.isArray(images)) return [{ path: "images", expected: "a list" }];
  return images.flatMap((image: unknown, index) => {
    const path = `images[${index}]`;
    if (!isFields(image)) return [{ path, expected: "an object with data and mimeType" }];
    const { data, mimeType, ...others } = image;
    const isData = typeof data === "string" && isBase64(data);
    const isType = typeof mimeType === "string" && /^image\/[a-z0-9.+-]+$/.test(mimeType);
    return [
      ...(isData ? [] : [{ path: `${path}.data`, expected: "base64" }]),
      ...(isType ? [] : [{ path: `${path}.mimeType`, expected: "the type of an image, such as image/png" }]),
      ...Object.keys(others).map((key) => ({ path: `${path}.${key}`, expected: "nothing" })),
    ];
  });
}

async function parsed(body: Uint8Array): Promise<unknown> {
  try {
    return await parseJson(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
}

function isName(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
