import { type ComponentType, lazy } from 'react'

export interface View {
  path: string
  View: ComponentType
}

/** Every address of the page. A view is loaded when it is first opened. */
export const routes: readonly View[] = [
  { path: '/', View: lazy(() => import('@/conversation/NewConversation')) },
  { path: '/c/:id', View: lazy(() => import('@/conversation/Conversation')) },
]
