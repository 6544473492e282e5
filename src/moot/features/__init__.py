"""Features shared by all faces: export, sharing, attachments, replay, and details of approvals."""
