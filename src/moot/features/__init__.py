"""Features shared by the faces: export, sharing, attachments, replay, and details of approvals."""
