import type { Refusal } from "./contract.ts";
import { readDataUrl } from "./openai-shared-data-url.ts";
import { refuse } from "./openai-shared-errors.ts";

/** An image of a request, and the parameter that it stands in. */
export interface SentImage {
  readonly url: string;
  readonly param: string;
}

const supported = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
/** "Up to 1,500 images per request" (Images and vision guide, "Image input requirements"). */
const maximumCount = 1_500;
/** "Total image size is 50.56MB, which exceeds the allowed limit of 50MB." The guide says more; the server says this. */
const maximumBytes = 50 * 1024 * 1024;

/** The images of a whole request. */
export function checkImages(images: readonly SentImage[]): Refusal | null {
  if (images.length > maximumCount) {
    const message = `Too many images in request: ${images.length}. Maximum is ${maximumCount}.`;
    return refuse({ rule: "too_many_images", message, param: images[maximumCount]?.param ?? null });
  }
  let total = 0;
  for (const image of images) {
    if (/^https?:\/\//.test(image.url)) continue;
    const read = checkDataUrl(image);
    if (typeof read === "object") return read;
    total += read;
  }
  if (total <= maximumBytes) return null;
  const size = (total / 1024 / 1024).toFixed(2);
  const message = `Total image size is ${size}MB, which exceeds the allowed limit of 50MB.`;
  return refuse({ rule: "images_too_large", message });
}

/** How many bytes it has, or what is wrong with it. */
function checkDataUrl({ url, param }: SentImage): Refusal | number {
  const image = url.startsWith("data:") ? readDataUrl(url) : null;
  if (image === null)
    return refuse({
      rule: "image_not_base64",
      message: "Invalid base64 image_url.",
      param,
      code: "invalid_base64_image",
    });
  // "PNG (.png), JPEG (.jpeg and .jpg), WEBP (.webp), Non-animated GIF (.gif)" (Images and vision guide)
  if (!supported.has(image.mediaType) || image.isAnimated)
    return refuse({
      rule: image.isAnimated ? "image_animated" : "image_type_unsupported",
      message:
        "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
      param,
      code: "invalid_image_format",
    });
  // Stricter than the server where both types are supported ones.
  if (image.actual !== image.mediaType)
    return refuse({
      rule: "image_type_mismatch",
      message:
        "The image data you provided does not represent a valid image. Please check your input and try again with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
      param,
      code: "image_parse_error",
    });
  return image.bytes;
}
