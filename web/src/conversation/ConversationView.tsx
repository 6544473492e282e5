import { useChat } from '@ai-sdk/react'
import { useQueryClient } from '@tanstack/react-query'
import { clsx } from 'clsx'
import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import { useLocation } from 'wouter'
import type { Message, Part } from '@/api/types'
import { deferred } from '@/app/deferred'
import { useTitle } from '@/app/title'
import type { Sending } from '@/conversation/ComposerArea'
import { ComposerArea } from '@/conversation/ComposerArea'
import { useChoice } from '@/conversation/composer/choice'
import { Head } from '@/conversation/Head'
import { AroundProvider } from '@/conversation/messages/context'
import { prepareText } from '@/conversation/messages/Text'
import { closePanel, usePanel } from '@/conversation/panel/content'
import { RunProblem } from '@/conversation/RunProblem'
import type { Played } from '@/conversation/replay/play'
import { Runtime } from '@/conversation/runtime'
import type { Session } from '@/conversation/session'
import { type History, type Target, Thread } from '@/conversation/Thread'
import { useScrollRequest } from '@/conversation/target'
import { text } from '@/text'
import { Failed, Loading } from '@/ui/States'
import { notifyError } from '@/ui/toasts'

const SidePanel = deferred(() => import('@/conversation/panel/SidePanel'))
const Raw = deferred(() => import('@/conversation/Raw'))
const Temporary = deferred(() => import('@/conversation/Temporary'))
const Undo = deferred(() => import('@/conversation/Undo'))
const Replay = deferred(() => import('@/conversation/replay/Replay'))
const NOTHING_PLAYED: Played = { messages: [], live: null }
/** What a replay shows has no other pages. */
const WHOLE = { older: null, loadingOlder: false, early: null, loadingNewer: false, jump: null }
/** Minimum ms between two renderings of streaming text. */
const FRAME = 33

interface Props {
  session: Session
  /** Shown while there are no messages. */
  welcome?: React.ReactNode
  /** Shown below the composer while there are no messages. */
  home?: React.ReactNode
  /** Called when the first prompt is sent. */
  onFirst?: () => void
}

/** The view of a new or existing conversation. */
export function ConversationView({ session, welcome, home, onFirst }: Props) {
  const state = useSyncExternalStore(session.subscribe, session.get)
  const { messages, status, error } = useChat<Message>({ chat: session.chat, throttle: FRAME })
  const busy = status === 'streaming' || status === 'submitted'
  const [raw, setRaw] = useState<Message | null>(null)
  const [undoing, setUndoing] = useState<Message | null>(null)
  const [choice, choose, picked] = useChoice(state.conversation, () => void session.sync())
  const { conversation, early } = state
  const [replay, setReplay] = useState<Played | null>(null)
  const shown = replay?.messages ?? early?.messages ?? messages
  useTitle(conversation?.title ?? '')
  useEffect(() => session.show(), [session])
  const [, go] = useLocation()
  const { movedTo } = state
  useEffect(() => {
    if (!movedTo) return
    session.moved()
    go(`/c/${encodeURIComponent(movedTo)}`)
  }, [session, movedTo, go])
  const target = useTarget(session)
  const panel = usePanel()
  useEffect(() => closePanel, [])
  const client = useQueryClient()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the lists depend on the change of status
  useEffect(() => {
    void client.invalidateQueries({ queryKey: ['runs', 'live'] })
    void client.invalidateQueries({ queryKey: ['conversations', 'list'] })
  }, [client, status])
  useEffect(prepareText, [])

  const isNew = state.conversation === null
  const send = useCallback(
    async (parts: Part[], { delivery, edits, wishes }: Sending = {}) => {
      const extra = {
        ...(wishes?.effort && { effort: wishes.effort }),
        ...(wishes?.tools && { tools: wishes.tools }),
        ...(picked.mode && { mode: picked.mode }),
        ...(typeof picked.web === 'boolean' && { web_search: picked.web }),
        ...(picked.agent && { agent: picked.agent }),
        ...(picked.model && { model: picked.model }),
        ...(isNew && picked.project && { project: picked.project }),
        ...(isNew && picked.temporary && { temporary: true }),
      }
      if (edits) return session.edit(edits, parts, extra)
      if (delivery) return session.sendDuringRun(parts, delivery, extra)
      onFirst?.()
      return session.send(parts, extra)
    },
    [session, picked, onFirst, isNew],
  )
  const streaming = busy ? (messages.at(-1)?.role === 'assistant' ? (messages.at(-1)?.id ?? '') : '') : null
  const replaying = replay !== null
  const live = replay ? replay.live : streaming
  const { nodes } = state
  const exists = conversation !== null
  const around = useMemo(() => {
    const byId = new Map(shown.map((message) => [message.id, message]))
    return {
      session,
      exists,
      live,
      replaying,
      nodes,
      find: (id: string) => byId.get(id),
      showRaw: setRaw,
      showUndo: setUndoing,
    }
  }, [session, exists, live, replaying, nodes, shown])
  const stopReplay = useCallback(() => setReplay(null), [])
  const history = useMemo(() => historyOf(session), [session])
  const empty = !messages.length && !state.loading

  return (
    <div className="flex min-h-0 grow">
      <main
        className={clsx(
          'flex min-w-0 grow flex-col',
          empty && (home ? 'overflow-y-auto' : welcome && 'md:justify-center md:pb-[12dvh]'),
        )}
      >
        {conversation && (
          <Head
            session={session}
            conversation={conversation}
            usage={messages.at(-1)?.metadata?.context_usage}
            replay={() => setReplay(NOTHING_PLAYED)}
          />
        )}
        {conversation?.expires_at && <Temporary conversation={conversation} onKept={() => void session.sync()} />}
        <AroundProvider value={around}>
          <Runtime session={session} messages={shown} busy={busy && !early && !replay} send={send}>
            {state.loading && !messages.length && (
              <Loading className="mx-auto w-full max-w-3xl grow px-6 pt-10" rows={5} />
            )}
            {state.error !== null && !messages.length && (
              <div className="mx-auto w-full max-w-3xl grow px-6 pt-10">
                <Failed error={state.error} retry={() => void session.sync(true)} />
              </div>
            )}
            {empty && state.error === null
              ? (welcome ?? <p className="m-auto text-muted">{text.conversation.empty}</p>)
              : messages.length > 0 && (
                  <Thread
                    key={replay ? 'replay' : 'messages'}
                    messages={messages}
                    state={replay ? WHOLE : state}
                    history={history}
                    busy={busy}
                    target={target}
                  >
                    {!early && !replay && (
                      <RunProblem
                        session={session}
                        error={error}
                        lost={state.lost}
                        failure={state.failure}
                        live={state.live}
                        busy={busy}
                      />
                    )}
                  </Thread>
                )}
            {replay && <Replay conversation={session.id} show={setReplay} onClose={stopReplay} />}
            <ComposerArea
              session={session}
              busy={busy}
              live={messages.at(-1)}
              send={send}
              choice={choice}
              choose={choose}
              draft={welcome ? 'new' : session.id}
              hidden={replaying}
            />
            {empty && home}
            {undoing && <Undo session={session} message={undoing} onClose={() => setUndoing(null)} />}
          </Runtime>
        </AroundProvider>
        {raw && <Raw conversation={session.id} message={raw} onClose={() => setRaw(null)} />}
      </main>
      {panel && <SidePanel panel={panel} />}
    </div>
  )
}

/** Return functions that load and show other parts of the history. They report errors. */
function historyOf(session: Session): History {
  return {
    loadOlder: () => void session.loadOlder().catch(notifyError),
    loadNewer: () => void session.loadNewer().catch(notifyError),
    toStart: () => void session.toStart().catch(notifyError),
    toLatest: () => session.toLatest(),
  }
}

/** Return the message to scroll to, once it is loaded. */
function useTarget(session: Session): Target | null {
  const request = useScrollRequest(session.id)
  const [target, setTarget] = useState<Target | null>(null)
  useEffect(() => {
    if (!request) return
    let gone = false
    session.reveal(request.message).then((id) => {
      if (!gone && id) setTarget({ id, turn: request.turn })
    }, notifyError)
    return () => {
      gone = true
    }
  }, [session, request])
  return target
}
