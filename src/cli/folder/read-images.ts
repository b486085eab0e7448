import { readFile } from "node:fs/promises";
import { SkeinError } from "../../core/errors.ts";
import { readImageHeader } from "../../core/image-header.ts";
import type { Terminal } from "../output/terminal.ts";
import { pathFrom } from "../output/terminal.ts";

interface Image {
  readonly data: string;
  readonly mimeType: string;
}

/** The images that a message is sent with, by the files that the user named. */
export async function readImages(terminal: Terminal, files: readonly string[]): Promise<Image[]> {
  return Promise.all(files.map((file) => readOne(pathFrom(terminal, file))));
}

async function readOne(file: string): Promise<Image> {
  const bytes = await readFile(file).catch((error: unknown) => {
    const advice = "Check the path behind --image; it is taken from where you stand";
    throw new SkeinError(
      "unreadable_file",
      { file, problem: (error as Error).message, advice },
      { cause: error },
    );
  });
  const header = readImageHeader(bytes);
  if (header !== null) return { data: bytes.toString("base64"), mimeType: header.mimeType };
  const advice = "Send a PNG, JPEG, GIF or WebP";
  throw new SkeinError("invalid_arguments", {
    problem: `${file} is no image that a model can be shown`,
    advice,
  });
}
