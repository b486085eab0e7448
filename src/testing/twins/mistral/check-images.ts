import type { Refusal } from "../contract.ts";
import { readDataUrl } from "../openai-shared-data-url.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isFields, listOf } from "../openai-shared-values.ts";
import { refuse } from "./errors.ts";

/** "The maximum number images per request via API is 8." (Vision guide, FAQ) */
const maximumCount = 8;
/** "The current file size limit is 10Mb." (Vision guide, FAQ) */
const maximumBytes = 10 * 1024 * 1024;
/** "PNG (.png), JPEG (.jpeg and .jpg), WEBP (.webp), Non-animated GIF with only one frame (.gif)" (Vision guide, FAQ) */
const supported = new Set(["image/png", "image/jpeg", "image/webp", "image/gif"]);

export function checkImages(messages: readonly Fields[]): Refusal | null {
  const urls = messages.flatMap(({ content }) => listOf(content).flatMap(urlsOf));
  if (urls.length > maximumCount) {
    const message = `Too many images in request: ${urls.length}, maximum is ${maximumCount}`;
    return refuse("too_many_images", "arguments", message);
  }
  for (const url of urls) {
    const wrong = /^https?:\/\//.test(url) ? null : checkDataUrl(url);
    if (wrong !== null) return wrong;
  }
  return null;
}

function urlsOf(chunk: unknown): string[] {
  if (!isFields(chunk) || chunk.type !== "image_url") return [];
  const url = isFields(chunk.image_url) ? chunk.image_url.url : chunk.image_url;
  return typeof url === "string" ? [url] : [];
}

function checkDataUrl(url: string): Refusal | null {
  const image = url.startsWith("data:") ? readDataUrl(url) : null;
  if (image === null) return refuse("image_not_base64", "file", "Image could not be decoded from base64");
  if (!supported.has(image.mediaType))
    return refuse("image_type_unsupported", "file", `Image type ${image.mediaType} is not supported`);
  // Stricter than the server where both types are supported ones.
  if (image.actual !== image.mediaType)
    return refuse("image_type_mismatch", "file", `Image data is not of type ${image.mediaType}`);
  if (image.isAnimated) return refuse("image_animated", "file", "Animated images are not supported");
  if (image.bytes <= maximumBytes) return null;
  return refuse("images_too_large", "file", `Image of ${image.bytes} bytes exceeds the limit of 10MB`);
}
