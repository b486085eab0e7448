import { useQuery } from "@tanstack/react-query";
import { Image } from "lucide-react";
import { useMemo } from "react";
import type { Result, SkeinClient } from "skein/client";
import { errorText, useGateway } from "../connect/gateway.tsx";
import type { SessionPlace } from "../paths.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { Foldable, useOpened } from "../ui/foldable.tsx";
import { useSessionPlace } from "../ui/session-head.tsx";
import styles from "./entry-row.module.css";
import type { BlobRef, Picture, StoredPart } from "./rows.ts";

/** Text from a tool. An entry contains only the beginning and the end of large text. The rest is read on demand. */
export function StoredText({ text, blob }: StoredPart) {
  const [step, setStep] = useOpened(blob?.sha256 ?? "");
  const whole = useBlob(blob, blob !== null && step > 0);
  const shown = useMemo(() => (whole.data === undefined ? text : decodeText(whole.data)), [whole.data, text]);
  return (
    <>
      <CodeBlock text={shown} language={/^\s*[[{]/.test(shown) ? "json" : ""} />
      {blob !== null && shown === text && (
        <p className={styles.stored}>
          {whole.error !== null && <span role="alert">{errorText(whole.error)}</span>}
          <button
            type="button"
            disabled={whole.isFetching}
            onClick={() => (step === 0 ? setStep(1) : void whole.refetch())}
          >
            {whole.isFetching ? "Loading…" : `Show the whole text (${byteCount(blob.bytes)})`}
          </button>
        </p>
      )}
    </>
  );
}

/** Small images are part of their entry. Large ones are read when they are opened. */
export function Pictures({ pictures }: { readonly pictures: readonly Picture[] }) {
  if (pictures.length === 0) return null;
  return (
    <div className={styles.images}>
      {pictures.map((picture, index) => {
        const name = `Attachment ${index + 1}`;
        if ("url" in picture) return <img key={index} src={picture.url} alt={name} />;
        const { mimeType, bytes } = picture.blob;
        return (
          <Foldable
            key={index}
            name={`image ${index}`}
            title={
              <>
                <Image size={13} aria-hidden /> {name}: {mimeType.slice("image/".length)}, {byteCount(bytes)}
              </>
            }
          >
            <StoredPicture blob={picture.blob} name={name} />
          </Foldable>
        );
      })}
    </div>
  );
}

function StoredPicture({ blob, name }: { readonly blob: BlobRef; readonly name: string }) {
  const { data, error, refetch } = useBlob(blob, true);
  if (error !== null)
    return (
      <p className={styles.stored}>
        <span role="alert">{errorText(error)}</span>
        <button type="button" onClick={() => void refetch()}>
          Retry
        </button>
      </p>
    );
  if (data === undefined) return <p aria-busy="true">Loading…</p>;
  return <img src={`data:${blob.mimeType};base64,${data}`} alt={name} />;
}

function useBlob(blob: BlobRef | null, isWanted: boolean) {
  const { client } = useGateway();
  const place = useSessionPlace();
  return useQuery({
    queryKey: ["blobs.get", place, blob?.sha256],
    queryFn: ({ signal }) => readBlob(client, place, blob?.sha256 ?? "", signal),
    enabled: isWanted,
    // A blob is identified by its content, so it never changes.
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** A multiple of three, so that the base64 pieces can be concatenated. */
const pieceBytes = 6 * 1024 * 1024;

/** Returns the whole blob in base64. */
async function readBlob(
  client: SkeinClient,
  place: SessionPlace,
  sha256: string,
  signal: AbortSignal,
): Promise<string> {
  const pieces: string[] = [];
  let offset: number | undefined = 0;
  while (offset !== undefined) {
    const params = { ...place, sha256, offset, length: pieceBytes };
    const piece: Result<"blobs.get"> = await client.call("blobs.get", params, { signal });
    pieces.push(piece.data);
    offset = piece.nextOffset;
  }
  return pieces.join("");
}

function decodeText(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
}

function byteCount(bytes: number): string {
  const kilobytes = bytes / 1000;
  return kilobytes < 1000 ? `${Math.ceil(kilobytes)} KB` : `${(kilobytes / 1000).toFixed(1)} MB`;
}
