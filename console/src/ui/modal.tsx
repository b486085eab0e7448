import { Dialog } from "@base-ui/react/dialog";
import type { ReactNode } from "react";
import { useRef } from "react";
import buttons from "./button.module.css";
import { Kbd } from "./keys.tsx";
import styles from "./modal.module.css";

interface ModalProps {
  readonly title: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A dialog over the page. Escape or a click outside closes it, and the focus returns to the previous element. */
export function Modal({ title, isOpen, onClose, children }: ModalProps) {
  const body = useRef<HTMLDivElement>(null);
  // An `autoFocus` in the body would move the focus before the dialog remembers which element had it.
  const firstControl = () => body.current?.querySelector<HTMLElement>("input, button") ?? null;
  return (
    <Dialog.Root open={isOpen} onOpenChange={(open) => (open ? undefined : onClose())}>
      <Dialog.Portal>
        <Dialog.Backdrop className={styles.backdrop} />
        <Dialog.Popup className={styles.popup} initialFocus={firstControl}>
          <header className={styles.head}>
            <Dialog.Title>{title}</Dialog.Title>
            <Dialog.Close className={buttons.button} data-look="quiet">
              Close <Kbd keys="Escape" />
            </Dialog.Close>
          </header>
          <div ref={body} className={styles.body}>
            {children}
          </div>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
