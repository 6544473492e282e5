import { Component, type ReactNode } from 'react'
import { isStale } from '@/app/stale'
import { text } from '@/text'
import { Button } from '@/ui/Button'

interface Props {
  /** When this value changes, the boundary clears its error and renders its children again. */
  resetKey: string
  children: ReactNode
}

interface State {
  error: unknown
  resetKey: string
}

/** Show a Reload button if rendering fails, for example because a lazily loaded file can't be fetched. */
export class LoadBoundary extends Component<Props, State> {
  override state: State = { error: null, resetKey: this.props.resetKey }

  static getDerivedStateFromError(error: unknown): Partial<State> {
    return { error: error ?? new Error() }
  }

  static getDerivedStateFromProps({ resetKey }: Props, state: State): Partial<State> | null {
    return resetKey === state.resetKey ? null : { error: null, resetKey }
  }

  /** Reload the page if the server has a newer build. Nothing is lost, because drafts and unsent prompts are stored in the browser. */
  override componentDidCatch(): void {
    void isStale().then((stale) => stale && location.reload())
  }

  override render() {
    if (this.state.error === null) return this.props.children
    return (
      <main className="m-auto max-w-md p-8 text-center">
        <div role="alert">
          <h1 className="text-xl font-semibold">{text.shell.failed}</h1>
          <p className="mt-2 text-muted">{text.shell.failedAbout}</p>
        </div>
        <Button look="primary" className="mt-5" onClick={() => location.reload()}>
          {text.common.reload}
        </Button>
      </main>
    )
  }
}
