import { readDataUrl } from "./images.ts";
import type { Fields } from "./shared.ts";
import { findUnknownField, isBlank, isFields, isJsonObject, RefusedRequest } from "./shared.ts";

/**
 * Shared code for OpenAI's two APIs. Errors are `{error: {message, type, param, code}}` (API reference, "Error codes"),
 * with the real server's wording where it is known.
 */

interface Complaint {
  readonly rule: string;
  readonly message: string;
  readonly param?: string | null;
  readonly code?: string | null;
  readonly status?: number;
}

export function refuse({ rule, message, param = null, code = null, status = 400 }: Complaint): never {
  const body = { error: { message, type: "invalid_request_error", param, code } };
  throw new RefusedRequest({ status, rule, body });
}

export function refuseMissing(param: string, rule = "missing_parameter"): never {
  const message = `Missing required parameter: '${param}'.`;
  refuse({ rule, message, param, code: "missing_required_parameter" });
}

export function refuseType(param: string, expected: string, value: unknown, rule = "wrong_type"): never {
  const message = `Invalid type for '${param}': expected ${expected}, but got ${describeType(value)} instead.`;
  refuse({ rule, message, param, code: "invalid_type" });
}

/** Returns a type as OpenAI names it in errors. */
function describeType(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "number") return Number.isInteger(value) ? "an integer" : "a decimal number";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

export function refuseEmptyText(param: string, rule: string): never {
  const message = `Invalid '${param}': empty string. Expected a string with minimum length 1, but got an empty string instead.`;
  refuse({ rule, message, param, code: "empty_string" });
}

/** The API reference's rule for a string. */
export interface TextRule {
  /** The rule name for a string that is missing, not a string, or violates the other fields. */
  readonly rule: string;
  readonly isNonEmpty?: boolean;
  readonly maxLength?: number;
  /** The rule name for a string that is too long. Defaults to `rule`. */
  readonly lengthRule?: string;
  readonly pattern?: RegExp;
  readonly isJsonObject?: boolean;
}

/** The longest string in one field: "Expected a string with maximum length 10485760" (the server's own message). */
const maxTextLength = 10_485_760;

export function checkText(param: string, value: unknown, expected: TextRule): asserts value is string {
  const { rule, isNonEmpty = false, maxLength = maxTextLength, lengthRule = rule, pattern } = expected;
  if (value === undefined) refuseMissing(param, rule);
  if (typeof value !== "string") refuseType(param, "a string", value, rule);
  if (isNonEmpty && value === "") refuseEmptyText(param, rule);
  if (value.length > maxLength) {
    const message = `Invalid '${param}': string too long. Expected a string with maximum length ${maxLength}, but got a string with length ${value.length} instead.`;
    refuse({ rule: lengthRule, message, param, code: "string_above_max_length" });
  }
  const code = "invalid_value";
  if (pattern !== undefined && !pattern.test(value)) {
    const message = `Invalid '${param}': string does not match pattern. Expected a string that matches the pattern '${pattern.source}'.`;
    refuse({ rule, message, param, code });
  }
  if (expected.isJsonObject !== true || isJsonObject(value)) return;
  refuse({ rule, message: `Invalid '${param}': expected a JSON object.`, param, code });
}

/**
 * Checks text in a message. Stricter than the server, which accepts blank text. Skein sends blank text only where
 * `canBeBlank` is set.
 */
export function checkContentText(
  value: unknown,
  param: string,
  canBeBlank: boolean,
  rule = "text_too_long",
): void {
  checkText(param, value, { rule, lengthRule: "text_too_long" });
  if (!canBeBlank && isBlank(value)) refuseEmptyText(param, "empty_content");
}

/**
 * "The name of the function to be called. Must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum
 * length of 64." (API reference, Chat, tools)
 */
export const functionName: TextRule = {
  rule: "bad_function_name",
  isNonEmpty: true,
  maxLength: 64,
  pattern: /^[a-zA-Z0-9_-]+$/,
};

/**
 * "A JSON string of the arguments." Stricter than the server, which accepts any string. Skein always sends an object.
 */
export const callArguments: TextRule = { rule: "bad_arguments", isJsonObject: true };

/** Checks that a value is one of `allowed`. */
export function checkOneOf(
  param: string,
  value: unknown,
  allowed: readonly string[],
  rule: string,
): asserts value is string {
  if (typeof value !== "string") refuseType(param, `one of ${quoteList(allowed)}`, value, rule);
  if (allowed.includes(value)) return;
  const message = `Invalid value: '${value}'. Supported values are: ${quoteList(allowed)}.`;
  refuse({ rule, message, param, code: "invalid_value" });
}

/** Formats names as OpenAI lists them: `'a', 'b', and 'c'`. */
function quoteList(names: readonly string[]): string {
  const quoted = names.map((name) => `'${name}'`);
  if (quoted.length < 3) return quoted.join(" and ");
  return `${quoted.slice(0, -1).join(", ")}, and ${quoted.at(-1)}`;
}

export function checkObject(param: string, value: unknown, rule?: string): asserts value is Fields {
  if (!isFields(value)) refuseType(param, "an object", value, rule);
}

/** Checks for a list or, with `emptyRule`, for a non-empty list. */
export function checkList(
  param: string,
  value: unknown,
  {
    rule,
    emptyRule,
    expected = "an array of objects",
  }: { rule?: string; emptyRule?: string; expected?: string },
): asserts value is readonly unknown[] {
  if (!Array.isArray(value)) refuseType(param, expected, value, rule);
  if (emptyRule === undefined || value.length > 0) return;
  const message = `Invalid '${param}': empty array. Expected an array with minimum length 1, but got an empty array instead.`;
  refuse({ rule: emptyRule, message, param, code: "empty_array" });
}

/** "Unknown parameter: 'messages[0].details'." */
export function checkKnownFields(at: string, fields: Fields, known: ReadonlySet<string>): void {
  const name = findUnknownField(fields, known);
  if (name === undefined) return;
  const param = at === "" ? name : `${at}.${name}`;
  const rule = "unknown_parameter";
  refuse({ rule, message: `Unknown parameter: '${param}'.`, param, code: rule });
}

/**
 * The reasoning efforts that OpenAI's models accept, as listed on their pages and in the server's error messages. The
 * first match applies. A model that is not listed accepts any effort.
 */
const effortsOfModels: readonly (readonly [models: RegExp, efforts: string])[] = [
  [/^gpt-5(\.\d)?-chat/, "medium"],
  [/^gpt-5-pro/, "high"],
  [/^gpt-5\.[245]-pro/, "medium high xhigh"],
  [/^gpt-5(\.1)?-codex(?!-max)/, "low medium high"],
  [/^gpt-5\.(1-codex-max|[23]-codex)/, "low medium high xhigh"],
  [/^gpt-5(-mini|-nano)?(-\d{4}|$)/, "minimal low medium high"],
  [/^gpt-5\.1(-\d{4}|$)/, "none low medium high"],
  [/^gpt-5\.[245](-mini|-nano)?(-\d{4}|$)/, "none low medium high xhigh"],
  [/^gpt-5\.6/, "none low medium high xhigh max"],
  [/^(o1|o1-pro|o3|o3-pro|o3-mini|o4-mini)(-\d{4}|$)/, "low medium high"],
];

/**
 * "The supported values depend on the model" (Reasoning guide). `o1-mini` and `o1-preview` do not have this parameter.
 */
export function checkEffort(model: string, effort: unknown, param: string): void {
  if (typeof effort !== "string") return;
  const rule = "unsupported_effort";
  if (/^o1-(mini|preview)/.test(model)) {
    const message = `Unsupported parameter: '${param}' is not supported with this model.`;
    refuse({ rule, message, param, code: "unsupported_parameter" });
  }
  const efforts = effortsOfModels.find(([models]) => models.test(model))?.[1].split(" ");
  if (efforts === undefined || efforts.includes(effort)) return;
  const message = `Unsupported value: '${effort}' is not supported with the '${model}' model. Supported values are: ${quoteList(efforts)}.`;
  refuse({ rule, message, param, code: "unsupported_value" });
}

/** An image in a request, and the parameter that contains it. */
export interface RequestImage {
  readonly url: string;
  readonly param: string;
}

const imageTypes = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/** "Up to 1,500 images per request" (Images and vision guide, "Image input requirements"). */
const maxImages = 1_500;
/**
 * "Total image size is 50.56MB, which exceeds the allowed limit of 50MB." The guide gives a higher limit, but this is
 * the server's message.
 */
const maxImageBytes = 50 * 1024 * 1024;

/** Checks the images in a whole request. */
export function checkImages(images: readonly RequestImage[]): void {
  if (images.length > maxImages) {
    const message = `Too many images in request: ${images.length}. Maximum is ${maxImages}.`;
    refuse({ rule: "too_many_images", message, param: images[maxImages]?.param ?? null });
  }
  let total = 0;
  for (const image of images) if (!/^https?:\/\//.test(image.url)) total += checkDataUrl(image);
  if (total <= maxImageBytes) return;
  const size = (total / 1024 / 1024).toFixed(2);
  const message = `Total image size is ${size}MB, which exceeds the allowed limit of 50MB.`;
  refuse({ rule: "images_too_large", message });
}

/** Returns the image's size in bytes. */
function checkDataUrl({ url, param }: RequestImage): number {
  const image = url.startsWith("data:") ? readDataUrl(url) : null;
  if (image === null) {
    const message = "Invalid base64 image_url.";
    refuse({ rule: "image_not_base64", message, param, code: "invalid_base64_image" });
  }
  // "PNG (.png), JPEG (.jpeg and .jpg), WEBP (.webp), Non-animated GIF (.gif)" (Images and vision guide)
  if (!imageTypes.includes(image.mediaType) || image.isAnimated) {
    const rule = image.isAnimated ? "image_animated" : "image_type_unsupported";
    const message =
      "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].";
    refuse({ rule, message, param, code: "invalid_image_format" });
  }
  // Stricter than the server if both types are supported.
  if (image.actual !== image.mediaType) {
    const message =
      "The image data you provided does not represent a valid image. Please check your input and try again with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].";
    refuse({ rule: "image_type_mismatch", message, param, code: "image_parse_error" });
  }
  return image.bytes;
}

/** The type and code for a server error, by status ("Error codes" guide). */
const serverErrors: Readonly<Record<number, readonly [type: string, code: string | null]>> = {
  401: ["invalid_request_error", "invalid_api_key"],
  403: ["invalid_request_error", "unsupported_country_region_territory"],
  404: ["invalid_request_error", "model_not_found"],
  429: ["requests", "rate_limit_exceeded"],
  500: ["server_error", "server_error"],
  503: ["service_unavailable_error", "server_is_overloaded"],
};

export function openaiErrorBody(status: number, message: string): unknown {
  const [type, code] = serverErrors[status] ??
    (status >= 500 ? serverErrors[500] : null) ?? ["invalid_request_error", null];
  return { error: { message, type, param: null, code } };
}
