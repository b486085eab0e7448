import { useState } from "react";
import type { Result } from "skein/client";
import { errorText, useChange, useOffline } from "../connect/gateway.tsx";
import { gatewayUrl } from "../connect/sign-in.ts";
import buttons from "../ui/button.module.css";
import { CopyButton } from "../ui/code-block.tsx";
import { Modal } from "../ui/modal.tsx";
import { Notice } from "../ui/notice.tsx";
import { encodeQr } from "../ui/qr-code.ts";
import { duration } from "../ui/time.ts";
import { useNow } from "../ui/use-now.ts";
import styles from "./create-token.module.css";

type Link = Result<"links.create">;

/** Signs in another browser, once. The link is created on request and discarded when the dialog closes. */
export function PhoneLink() {
  const change = useChange();
  const offline = useOffline();
  const [isOpen, setIsOpen] = useState(false);
  const [link, setLink] = useState<Link | null>(null);
  const [error, setError] = useState<string | null>(null);
  const open = async () => {
    setIsOpen(true);
    setLink(null);
    setError(null);
    try {
      const { url, expiresAt } = await change("links.create", {});
      // Relative, because only this page knows the gateway's URL.
      setLink({ url: new URL(url, `${gatewayUrl}/`).href, expiresAt });
    } catch (failure) {
      setError(errorText(failure));
    }
  };
  const close = () => {
    setIsOpen(false);
    setLink(null);
  };
  return (
    <>
      <button type="button" className={buttons.button} onClick={() => void open()} {...offline}>
        Open on a phone…
      </button>
      <Modal title="Open on a phone" isOpen={isOpen} onClose={close}>
        {error !== null ? (
          <Notice text={error} isError />
        ) : link === null ? (
          <Notice text="Creating a link…" isBusy />
        ) : (
          <LinkText link={link} onRenew={() => void open()} />
        )}
      </Modal>
    </>
  );
}

function LinkText({
  link: { url, expiresAt },
  onRenew,
}: {
  readonly link: Link;
  readonly onRenew: () => void;
}) {
  const left = expiresAt - useNow();
  if (left <= 0) {
    return (
      <Notice text="This link has expired.">
        <button type="button" className={buttons.button} onClick={onRenew}>
          Create another
        </button>
      </Notice>
    );
  }
  const isLocal = /^https?:\/\/(?:localhost|127\.|\[::1\])/.test(url);
  return (
    <div className={styles.form}>
      <div className={styles.code}>
        <QrImage text={url} label="QR code for the link" />
      </div>
      <p className={styles.secret}>
        <code>{url}</code>
        <CopyButton text={url} label="Copy the link" />
      </p>
      <p className={styles.hint}>
        This link can be used once, to sign in one browser as you. It expires in {duration(left)}.
        {isLocal &&
          " This address works only on this computer. To use a phone, open the console at an address that the phone can reach."}
      </p>
    </div>
  );
}

/**
 * A QR code, dark on white in both themes, because some readers cannot read inverted codes. `null` if the text is too
 * long.
 */
function QrImage({ text, label }: { readonly text: string; readonly label: string }) {
  const rows = encodeQr(text);
  if (rows === null) return null;
  const side = rows.length + 8;
  const path = rows
    .flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x + 4} ${y + 4}h1v1h-1z`] : [])))
    .join("");
  return (
    <svg
      viewBox={`0 0 ${side} ${side}`}
      width={side * 4}
      height={side * 4}
      role="img"
      aria-label={label}
      shapeRendering="crispEdges"
    >
      <rect width={side} height={side} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
