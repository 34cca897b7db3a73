"""How fast image files become batches on a device, against torchvision with torch's DataLoader."""
