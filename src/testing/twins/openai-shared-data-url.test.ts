import { expect, test } from "vitest";
import { images } from "../../../test/support/twin-fetch.ts";
import { readDataUrl } from "./openai-shared-data-url.ts";

test.each([
  ["png", images.png, "image/png"],
  ["jpeg", images.jpeg, "image/jpeg"],
  ["jpg", images.jpeg.replace("jpeg", "JPG"), "image/jpeg"],
  ["webp", images.webp, "image/webp"],
  ["gif", images.gif, "image/gif"],
])("[TWB6] a %s is read from its data URL", (_, url, type) => {
  const bytes = Buffer.from(url.slice(url.indexOf(",") + 1), "base64").length;
  expect(readDataUrl(url)).toEqual({ mediaType: type, actual: type, bytes, isAnimated: false });
});

test("[TWB6] what is no image is told by its bytes, an animated GIF by its frames", () => {
  expect(readDataUrl(images.of("image/png", Buffer.from("hello")))?.actual).toBeNull();
  expect(readDataUrl(images.animatedGif)?.isAnimated).toBe(true);
  const cut = Buffer.from(images.animatedGif.slice(22), "base64").subarray(0, 20);
  expect(readDataUrl(images.of("image/gif", cut))?.isAnimated).toBe(false);
});

test.each([
  ["not in base64", "data:image/png,iVBORw0KGgoA"],
  ["without a comma", "data:image/png;base64"],
  ["of another length", "data:image/png;base64,AAAAA"],
  ["with other characters", "data:image/png;base64,AA-_"],
  ["with padding alone", "data:image/png;base64,=="],
])("[TWB6] a data URL %s is none", (_, url) => {
  expect(readDataUrl(url)).toBeNull();
});
